// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"runtime"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func BenchmarkCompile(b *testing.B) {
	var program []byte
	for b.Loop() {
		p, err := Default(nil)
		require.NoError(b, err)
		program, err = Compile(p)
		require.NoError(b, err)
	}
	b.ReportMetric(float64(len(program)/8), "instructions")
}

// BenchmarkGetppid measures a system call without a filter, with the default one, and with one that
// the kernel must run each time, since an argument matters.
func BenchmarkGetppid(b *testing.B) {
	p, err := Default(nil)
	require.NoError(b, err)
	costly := *p
	costly.Syscalls = append([]specs.LinuxSyscall{{Names: []string{"getppid"}, Action: specs.ActErrno,
		Args: []specs.LinuxSeccompArg{{Index: 0, Value: 1 << 40, Op: specs.OpEqualTo}}}}, p.Syscalls...)
	for _, bench := range []struct {
		name    string
		profile *specs.LinuxSeccomp
	}{{"none", nil}, {"default", p}, {"argument", &costly}} {
		b.Run(bench.name, func(b *testing.B) {
			done := make(chan error)
			go func() { // on a thread that ends with its filter
				runtime.LockOSThread()
				if bench.profile != nil {
					program, err := Compile(bench.profile)
					if err == nil {
						err = installFilter(program)
					}
					if err != nil {
						done <- err
						return
					}
				}
				b.ResetTimer()
				for range b.N {
					unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0)
				}
				done <- nil
			}()
			require.NoError(b, <-done)
		})
	}
}
