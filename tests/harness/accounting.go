// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Accounting reports whether the base has what Options.Accounting needs.
func Accounting() bool {
	repo, err := Repository()
	if err != nil {
		return false
	}
	from, err := findBase(repo)
	if err != nil {
		return false
	}
	for _, program := range []string{"usr/sbin/slurmdbd", "usr/sbin/mariadbd", "usr/bin/mariadb-install-db", "usr/bin/mariadb"} {
		if _, err := os.Lstat(filepath.Join(from.root, program)); err != nil {
			return false
		}
	}
	return true
}

// The database of a cluster: its files and its socket, where Slurm's library looks for it.
const (
	databaseDir    = "/var/lib/slurm/mysql"
	databaseSocket = "/run/mysqld/mysqld.sock"
	databaseName   = "slurm_acct_db"
	databasePort   = "6820" // of slurmdbd; 6819 is n2's
)

// accountingLines are those of slurm.conf.
var accountingLines = map[string]string{
	"AccountingStorageType": "accounting_storage/slurmdbd",
	"AccountingStorageHost": Address,
	"AccountingStoragePort": databasePort,
}

// writeSlurmdbdConf writes slurmdbd.conf. The database has no password: only slurm and root can open its
// socket.
func (c *Cluster) writeSlurmdbdConf() error {
	if !c.options.Accounting {
		return nil
	}
	path := filepath.Join(c.root, c.confDir(), "slurmdbd.conf")
	err := replaceFile(path, strings.Join([]string{
		"AuthType=auth/" + cmp.Or(c.base.slurm.auth, "munge"), "SlurmUser=slurm", "DbdHost=head", "DbdAddr=" + Address, "DbdPort=" + databasePort,
		"StorageType=accounting_storage/mysql", "StorageHost=localhost", "StorageUser=root", "StorageLoc=" + databaseName,
		"LogFile=/var/log/slurm/slurmdbd.log", "PidFile=/run/slurm/slurmdbd.pid", "",
	}, "\n"), 0o600)
	if err != nil {
		return err
	}
	uid, gid, err := c.lookUpOwner("slurm")
	if err != nil {
		return err
	}
	return os.Chown(path, uid, gid)
}

// startAccounting starts mariadbd and slurmdbd as the user slurm. They end with the machine.
func (c *Cluster) startAccounting() error {
	if !c.options.Accounting {
		return nil
	}
	asSlurm := []string{"setpriv", "--reuid=slurm", "--regid=slurm", "--init-groups"}
	steps := [][]string{
		{"install", "-d", "-o", "slurm", "-g", "slurm", "-m", "700", databaseDir, filepath.Dir(databaseSocket)},
		append(asSlurm, "mariadb-install-db", "--no-defaults", "--datadir="+databaseDir, "--auth-root-authentication-method=normal", "--skip-test-db"),
		append(asSlurm, "setsid", "sh", "-c", `mariadbd "$@" >/var/log/slurm/mariadbd.log 2>&1 </dev/null &`, "sh", "--no-defaults",
			"--datadir="+databaseDir, "--socket="+databaseSocket, "--skip-networking", "--innodb-buffer-pool-size=32M",
			"--innodb-flush-log-at-trx-commit=0", "--innodb-lock-wait-timeout=900"),
	}
	for _, step := range steps {
		if r := c.Do(Command{Dir: "/", Args: step}); r.Code != 0 {
			return fmt.Errorf("cluster: %s: %s", strings.Join(step, " "), r)
		}
	}
	// slurmdbd would make it, but with the libmariadb of MariaDB 11.8.9 it gets no answers after a connection that failed.
	create := []string{"mariadb", "--no-defaults", "--socket=" + databaseSocket, "-e", "create database if not exists " + databaseName}
	if !Poll(Timeout, func() bool { return c.Root(create...).Code == 0 }) {
		return fmt.Errorf("cluster: mariadbd does not answer:\n%s", c.logTail("mariadbd"))
	}
	if err := c.startDaemon(Command{Args: append(asSlurm, "/usr/sbin/slurmdbd")}); err != nil {
		return err
	}
	// It says no where slurmctld would have made the entry itself, or slurmdbd is not there yet.
	if !Poll(Timeout, func() bool {
		c.Root("sacctmgr", "-i", "add", "cluster", "private")
		return strings.TrimSpace(c.Root("sacctmgr", "-n", "-P", "show", "cluster", "format=cluster").Stdout) == "private"
	}) {
		return fmt.Errorf("cluster: slurmdbd does not answer:\n%s", c.logTail("slurmdbd"))
	}
	return nil
}

func (c *Cluster) logTail(name string) string {
	text, _ := os.ReadFile(filepath.Join(c.root, "var/log/slurm", name+".log"))
	return string(text[max(0, len(text)-4000):])
}

// Sacct returns the accounting of a job so far, STEP STATE EXITCODE for the job, whose STEP is "job", and
// each of its steps: batch, extern, 0, 1, ...
func (c *Cluster) Sacct(id string) (lines []string) {
	for line := range strings.Lines(c.Root("sacct", "-n", "-P", "-j", id, "-o", "JobID,State,ExitCode").Stdout) {
		line = strings.ReplaceAll(strings.TrimSpace(line), "|", " ")
		line, isJob := strings.CutPrefix(line, id+" ")
		if isJob {
			line = "job " + line
		}
		lines = append(lines, strings.TrimPrefix(line, id+"."))
	}
	return lines
}
