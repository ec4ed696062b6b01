// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/gojail/gojail/gojail/config"
)

// sysctlDir is the directory of the kernel's settings.
const sysctlDir = "/proc/sys"

// usernsSettings are the settings that refuse user namespaces, with the value that does and one that permits them.
var usernsSettings = []struct {
	path, refusing, permitting string
	ofUsers                    bool // to users only
}{
	{"user/max_user_namespaces", "0", "65536", false},                // user_namespaces(7)
	{"kernel/unprivileged_userns_clone", "0", "1", true},             // Debian
	{"kernel/apparmor_restrict_unprivileged_userns", "1", "0", true}, // Ubuntu
}

// findUsernsRefusal returns a sysctl(8) argument that permits user namespaces to root, or to users, if a setting
// below dir refuses them; else "".
func findUsernsRefusal(dir string, users bool) string {
	for _, s := range usernsSettings {
		text, err := os.ReadFile(filepath.Join(dir, s.path))
		if err == nil && strings.TrimSpace(string(text)) == s.refusing && (users || !s.ofUsers) {
			return strings.ReplaceAll(s.path, "/", ".") + "=" + s.permitting
		}
	}
	return ""
}

// checkContainers warns if the node refuses users the namespaces that the jail's filter permits.
func (c *checker) checkContainers(subject string, j *config.Jail) {
	if j.Isolation.Seccomp != config.SeccompContainers {
		return
	}
	if argument := findUsernsRefusal(sysctlDir, true); argument != "" {
		c.warn(subject, "sysctl -w "+argument, `seccomp = "containers": this node does not permit user namespaces to `+
			`users, and containers in the jail fail`)
	}
}
