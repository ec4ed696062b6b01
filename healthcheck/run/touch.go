// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"os"
)

// touch opens and reads a program that is to be started, and the interpreter that it names.
// On a disk that hangs it is this that does not come back, and not execve(2), which holds
// up all of this process as long as it has one CPU (package onecpu). Errors are execve's to tell.
func touch(program string) {
	for range 2 {
		if info, err := os.Stat(program); err != nil || !info.Mode().IsRegular() {
			return
		}
		file, err := os.Open(program)
		if err != nil {
			return
		}
		head := make([]byte, 256) // what the kernel reads of it
		n, _ := file.Read(head)
		file.Close()
		line, _, _ := bytes.Cut(head[:n], []byte("\n"))
		words := bytes.Fields(bytes.TrimPrefix(line, []byte("#!")))
		if !bytes.HasPrefix(line, []byte("#!")) || len(words) == 0 {
			return
		}
		program = string(words[0])
	}
}
