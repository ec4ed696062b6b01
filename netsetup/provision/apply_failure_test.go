// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/netsetup/link"
)

// TestJobThatCameMeanwhile gives a VF to a job between plan and apply.
func TestJobThatCameMeanwhile(t *testing.T) {
	card := ens1f0
	card.NumVFs = 3
	f := newFake(t, card)
	p, err := MakePlan(site(newFullPolicy()), f.ReadInventory(), Held{})
	require.NoError(t, err)
	f.MoveToJob(card.VFAddress(2))
	err = Apply(p, f.kernel, func(*Step) {})
	require.ErrorContains(t, err, "VFs: 3 -> 2: VF 2 (0000:86:01.2) was moved to another network namespace meanwhile; drain the node first")
	assert.Len(t, f.ReadInventory().FindPF("ens1f0").VFs, 3)
}

// TestFailures makes each kind of step fail; afterwards the card must be as before.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(*fake)
		want string
	}{
		"no room for VFs":    {func(f *fake) { f.Fail["sriov_numvfs"] = unix.ENOMEM }, "VFs: 0 -> 2: write .*: cannot allocate memory; the PCI bridge has no room for the VFs: boot with pci=realloc$"},
		"busy":               {func(f *fake) { f.Fail["sriov_numvfs"] = unix.EBUSY }, "VFs: 0 -> 2: write .*device or resource busy; VFs were changed"},
		"the MAC is refused": {func(f *fake) { f.refuse["ens1f0 1 MAC"] = unix.EPERM }, "VF 1 MAC: - -> [0-9a-f:]+: operation not permitted$"},
		"no such knob":       {func(f *fake) { f.refuse["ens1f0 1 trust"] = unix.EOPNOTSUPP }, "VF 1 trust: - -> on: operation not supported$"},
		"no driver":          {func(f *fake) { f.Fail["drivers_probe"] = unix.EIO }, "VF 0 driver: - -> bound: write .*input/output error$"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, ens1f0)
			c.harm(f)
			_, err := f.apply(t, site(newFullPolicy()))
			require.Error(t, err)
			assert.Regexp(t, "^ens1f0 \\(0000:86:00.0\\): "+c.want, err.Error())
			pf := f.ReadInventory().FindPF("ens1f0")
			assert.Zero(t, pf.NumVFs, "%v", f.listChanges())
			assert.Empty(t, pf.VFs)
			assert.True(t, pf.AutoProbe)
			assert.Equal(t, 1500, pf.MTU)
			last := f.listChanges()[len(f.listChanges())-1]
			assert.Equal(t, "sriov_drivers_autoprobe 1", last, "the first step is the last to be taken back")
		})
	}
}

func TestOtherCardsGoOn(t *testing.T) {
	f := newFake(t, ens1f0, ens2f0)
	f.refuse["ens2f0 0 trust"] = unix.EOPNOTSUPP // the first card of the plan
	p := newFullPolicy()
	p.NIC = on("ens1f0", "ens2f0")
	_, err := f.apply(t, site(p))
	require.ErrorContains(t, err, "ens2f0 (0000:3b:00.0): VF 0 trust: - -> on: operation not supported")
	assert.Zero(t, f.ReadInventory().FindPF("ens2f0").NumVFs)
	assert.Equal(t, 2, f.ReadInventory().FindPF("ens1f0").NumVFs)
}

// TestRatesNeedALink uses an igb-like card, which accepts no rate without a link.
func TestRatesNeedALink(t *testing.T) {
	f := newFake(t, ens1f0)
	state := f.DevicePath(ens1f0.PCI) + "/net/ens1f0/operstate"
	f.WriteFile(state, "down")
	set := f.kernel.SetVF
	f.kernel.SetVF = func(pf string, number int, v link.VFKnobs) error {
		if v.Rates != nil && !f.kernel.isRunning(f.ReadInventory().FindPF(pf)) {
			go func() { f.recordChange("the link comes up"); f.WriteFile(state, "up") }()
			return unix.EINVAL
		}
		return set(pf, number, v)
	}
	_, err := f.apply(t, site(newFullPolicy()))
	require.NoError(t, err)
	said := strings.Join(f.listChanges(), "\n")
	assert.Contains(t, said, "the link comes up\nens1f0 0 rates 0-1000 Mbit/s\nens1f0 1 rates 0-1000 Mbit/s\n")

	f = newFake(t, ens1f0)
	f.refuse["ens1f0 0 rates"] = unix.EINVAL
	_, err = f.apply(t, site(newFullPolicy()))
	assert.ErrorContains(t, err, "VF 0 rates: - -> 0-1000 Mbit/s: invalid argument", "with a link it is asked once")
	assert.Equal(t, 1, strings.Count(strings.Join(f.listChanges(), "\n"), "ens1f0 0 rates"))
	f.WriteFile(f.DevicePath(ens1f0.PCI)+"/net/ens1f0/operstate", "down")
	f.kernel.SetVF = func(pf string, number int, v link.VFKnobs) error {
		if v.Rates != nil {
			f.kernel.Patience = time.Second
			return unix.EINVAL
		}
		return f.setVF(pf, number, v)
	}
	_, err = f.apply(t, site(newFullPolicy()))
	assert.ErrorContains(t, err, "invalid argument; the link of ens1f0 did not appear within 1s")
}

func TestHangingCard(t *testing.T) {
	f := newFake(t, ens1f0)
	release := make(chan struct{})
	defer close(release)
	f.Hang["sriov_numvfs"] = release
	p, err := MakePlan(site(newFullPolicy()), f.ReadInventory(), Held{})
	require.NoError(t, err)
	err = Apply(p, f.kernel, func(s *Step) {
		if s.What == "VFs" {
			f.kernel.Patience = time.Second
		}
	})
	require.ErrorIs(t, err, errHangs)
	assert.Regexp(t, `VFs: 0 -> 2: write "2" to .*/sriov_numvfs does not return after 1s; see dmesg`, err.Error())
	assert.Equal(t, []string{"sriov_drivers_autoprobe 0", "sriov_numvfs 2"}, f.listChanges(), "nothing more is asked of it")
}

func TestVFsThatDoNotCome(t *testing.T) {
	f := newFake(t, ens1f0)
	f.kernel.Patience = time.Second
	write := f.kernel.Write
	f.kernel.Write = func(path, text string) error {
		if strings.HasSuffix(path, "drivers_probe") {
			return nil
		}
		return write(path, text)
	}
	_, err := f.apply(t, site(newFullPolicy()))
	require.ErrorContains(t, err, "the driver of 0000:86:01.0 did not appear within 1s; see dmesg; load the VFs' driver (modprobe $(cat ")
}

// TestKilledAnywhere ends Apply after each write and each knob, and runs it again.
func TestKilledAnywhere(t *testing.T) {
	type killed struct{}
	for after := 0; ; after++ {
		f := newFake(t, ens1f0)
		count := 0
		die := func() {
			if count++; count > after {
				panic(killed{})
			}
		}
		set := f.kernel.SetVF
		f.kernel.SetVF = func(pf string, number int, v link.VFKnobs) error { die(); return set(pf, number, v) }
		died := func() (died bool) {
			defer func() {
				if r := recover(); r != nil {
					died = true
				}
			}()
			p, err := MakePlan(site(newFullPolicy()), f.ReadInventory(), Held{})
			require.NoError(t, err)
			require.NoError(t, Apply(p, f.kernel, func(*Step) { die() }))
			return false
		}()
		f.kernel.SetVF = set
		_, err := f.apply(t, site(newFullPolicy()))
		require.NoError(t, err, "killed after %d", after)
		require.Empty(t, formatLines(f.observePlan(t, site(newFullPolicy()), nil)), "killed after %d", after)
		pf := f.ReadInventory().FindPF("ens1f0")
		require.True(t, pf.AutoProbe, "killed after %d", after)
		require.Len(t, pf.VFs, 2)
		require.Equal(t, 9000, pf.VFs[1].MTU)
		if !died {
			assert.Greater(t, after, 20)
			return
		}
	}
}
