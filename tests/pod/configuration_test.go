// SPDX-License-Identifier: Apache-2.0

package pod_test

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
)

// slurmConf is what Slinky's operator writes, with the lines of docs/kubernetes.md.
const slurmConf = `ClusterName=pod
SlurmUser=slurm
SlurmctldHost=ctl(192.0.2.1)
StateSaveLocation=/var/spool/slurmctld
SlurmdUser=root
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
MaxNodeCount=1024
AuthType=auth/slurm
CredType=cred/slurm
AuthInfo=use_client_ids
SlurmctldParameters=enable_configless
NodeSet=pods Feature=pods
PartitionName=main Nodes=pods Default=YES MaxTime=INFINITE State=UP
GresTypes=gpu
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
KillWait=2
Prolog=/usr/lib/gojail/prolog-1
`

// gpu is the one device that the container is granted: /dev/full by another name.
const gpu = "/dev/nvidia0"

const gojailToml = `default    = "debian"
allow_none = true

[jail.debian]
root      = "/srv/jails/debian"
devices   = ["/dev/nvidia*"]
jail_root = ["self"]
`

// lateToml has a jail besides, whose storage is mounted later.
const lateToml = gojailToml + `
[jail.late]
root = "/srv/jails/late"
`

// networkToml has a rail on a card that is not there.
const networkToml = `[[policy]]
name = "p"
nic = { pf = ["nosuch0"] }
vfs = 1
[[pool]]
name = "a"
subnet = "10.1.0.0/24"
nodes = "n1"
per_node = 2
[[rail]]
name = "r"
policy = "p"
pools = ["a"]
`

// writeConfiguration makes the directories of Secrets and ConfigMaps: secret-n1, secret-ctl with slurmctld's files, and gojail.
func (c *cluster) writeConfiguration() error {
	key := make([]byte, 1024)
	rand.Read(key)
	return errors.Join(
		os.WriteFile(filepath.Join(c.dir, "containers.conf"), []byte("[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\nruntime = \"runc\"\n"), 0o644),
		c.writeConfigMap("secret-n1", 0o600, map[string]string{"slurm.key": string(key)}),
		c.writeConfigMap("secret-ctl", 0o644, map[string]string{
			"slurm.key":      string(key),
			"slurm.conf":     slurmConf,
			"cgroup.conf":    "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\nConstrainDevices=yes\n",
			"gres.conf":      "Name=gpu File=" + gpu + "\n",
			"plugstack.conf": "required /usr/lib/gojail/spank_gojail.so\n",
		}),
		c.writeConfigMap("gojail", 0o644, map[string]string{"gojail.toml": gojailToml}),
		c.writeConfigMap("network", 0o644, map[string]string{"network.toml": networkToml}),
		c.writeConfigMap("gojail-late", 0o644, map[string]string{"gojail.toml": lateToml}),
	)
}

// writeConfigMap makes a directory as kubelet does (AtomicWriter): 0777, with a link for each file that leads through the link
// ..data to a directory that one rename replaces.
func (c *cluster) writeConfigMap(name string, mode os.FileMode, files map[string]string) error {
	dir := filepath.Join(c.dir, name)
	const version = "..2026_01_01_00_00_00.1"
	err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o777), os.Mkdir(filepath.Join(dir, version), 0o755), os.Symlink(version, filepath.Join(dir, "..data")))
	for file, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, version, file), []byte(text), mode), os.Symlink("..data/"+file, filepath.Join(dir, file)))
	}
	return err
}
