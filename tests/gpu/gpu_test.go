// SPDX-License-Identifier: Apache-2.0

package gpu_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// driverLibraries are what the test programs need of the driver, by soname.
var driverLibraries = []string{"libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1", "libnvidia-gpucomp.so"}

var gpuNode = regexp.MustCompile(`^/dev/nvidia[0-9]+$`)

// findGPUs returns the device nodes of the GPUs and those that every job needs.
func findGPUs(t *testing.T) (gpus, common []string) {
	t.Helper()
	all, err := filepath.Glob("/dev/nvidia*")
	require.NoError(t, err)
	for _, path := range all {
		switch st, err := os.Stat(path); {
		case gpuNode.MatchString(path):
			gpus = append(gpus, path)
		case err == nil && st.Mode()&os.ModeCharDevice != 0:
			common = append(common, path)
		}
	}
	if len(gpus) == 0 {
		t.Skip("needs an NVIDIA GPU: /dev/nvidia0")
	}
	return gpus, common
}

// findDriver returns the files of the driver on this machine.
func findDriver(t *testing.T) (files []string) {
	t.Helper()
	cache, err := exec.Command("ldconfig", "-p").Output()
	require.NoError(t, err)
	dirs := map[string]bool{"/usr/local/nvidia/lib64": true, "/usr/local/nvidia/lib": true}
	for line := range strings.Lines(string(cache)) {
		if name, path, found := strings.Cut(strings.TrimSpace(line), " => "); found && strings.HasPrefix(name, driverLibraries[0]) {
			dirs[filepath.Dir(path)] = true
		}
	}
	for _, name := range driverLibraries {
		for dir := range dirs {
			if found, _ := filepath.Glob(filepath.Join(dir, name+"*")); len(found) > 0 {
				path, err := filepath.EvalSymlinks(found[0])
				require.NoError(t, err)
				files = append(files, path)
				break
			}
		}
	}
	smi, err := exec.LookPath("nvidia-smi")
	if err != nil {
		smi = "/usr/local/nvidia/bin/nvidia-smi"
	}
	require.FileExists(t, smi)
	return append(files, smi)
}

// buildAdd compiles the program of the tests.
func buildAdd(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "add")
	if out, err := exec.Command("gcc", "-std=gnu11", "-O1", "-o", program, "testdata/add.c", "-ldl").CombinedOutput(); err != nil {
		t.Skipf("needs gcc: %s", out)
	}
	return readText(t, program)
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

type deviceNode struct {
	Path string `json:"path"`
}

type cdiMount struct {
	Host    string   `json:"hostPath"`
	Inside  string   `json:"containerPath"`
	Options []string `json:"options"`
}

type cdiHook struct {
	Name string   `json:"hookName"`
	Path string   `json:"path"`
	Args []string `json:"args"`
}

type cdiEdits struct {
	Nodes  []deviceNode `json:"deviceNodes,omitempty"`
	Mounts []cdiMount   `json:"mounts,omitempty"`
	Hooks  []cdiHook    `json:"hooks,omitempty"`
}

type cdiDevice struct {
	Name  string   `json:"name"`
	Edits cdiEdits `json:"containerEdits"`
}

// describeDriver returns the CDI file of the GPUs, with the driver's files below /opt/driver of the machine.
func describeDriver(t *testing.T, gpus, common, files []string) string {
	t.Helper()
	spec := struct {
		Version string      `json:"cdiVersion"`
		Kind    string      `json:"kind"`
		Devices []cdiDevice `json:"devices"`
		Edits   cdiEdits    `json:"containerEdits"`
	}{Version: "0.5.0", Kind: "nvidia.com/gpu"}
	all := cdiDevice{Name: "all"}
	for i, path := range gpus {
		spec.Devices = append(spec.Devices, cdiDevice{fmt.Sprint(i), cdiEdits{Nodes: []deviceNode{{path}}}})
		all.Edits.Nodes = append(all.Edits.Nodes, deviceNode{path})
	}
	spec.Devices = append(spec.Devices, all)
	for _, path := range common {
		spec.Edits.Nodes = append(spec.Edits.Nodes, deviceNode{path})
	}
	const libraries = "/usr/lib/x86_64-linux-gnu"
	spec.Edits.Hooks = []cdiHook{{"createContainer", "/usr/bin/nvidia-cdi-hook", []string{"nvidia-cdi-hook", "update-ldcache", "--folder", libraries}}}
	for _, file := range files {
		inside := filepath.Join(libraries, filepath.Base(file))
		if strings.HasSuffix(file, "smi") {
			inside = "/usr/bin/nvidia-smi"
		}
		spec.Edits.Mounts = append(spec.Edits.Mounts, cdiMount{"/opt/driver/" + filepath.Base(file), inside, []string{"ro", "nosuid", "nodev", "bind"}})
	}
	text, err := json.Marshal(spec)
	require.NoError(t, err)
	return string(text)
}

// startCluster starts a Slurm whose node n1 has the GPUs of this machine.
func startCluster(t *testing.T) (c *harness.Cluster, gpus []string) {
	t.Helper()
	gpus, common := findGPUs(t)
	driver := findDriver(t)
	options := harness.Options{
		Plugin: true, Jails: []string{"debian"}, Constrain: true,
		Config: strings.Replace(harness.DefaultConfig, "[jail.debian]\n",
			"[jail.debian]\ncdi = [\"nvidia.com/gpu=all\"]\njail_root = [\"self\", \"range\"]\n", 1),
		Files: map[string]string{"/opt/add": buildAdd(t), "/etc/cdi/nvidia.json": describeDriver(t, gpus, common, driver)},
		SlurmConf: map[string]string{
			"GresTypes": "gpu",
			"NodeName": fmt.Sprintf("n1 NodeAddr=%[1]s Port=6818 CPUs=4 Gres=gpu:%[2]d State=UNKNOWN\n"+
				"NodeName=n2 NodeAddr=%[1]s Port=6819 CPUs=4 State=UNKNOWN", harness.Address, len(gpus)),
		},
	}
	options.Config = options.Config[:strings.Index(options.Config, "[jail.other]")]
	gres := ""
	for _, path := range gpus {
		gres += "NodeName=n1 Name=gpu File=" + path + "\n"
	}
	options.Files["/etc/slurm/gres.conf"] = gres
	for _, file := range driver {
		options.Files["/opt/driver/"+filepath.Base(file)] = readText(t, file)
	}
	options.Files["/etc/subuid"] = "alice:1000000000:65536\n"
	options.Files["/etc/subgid"] = "alice:1000000000:65536\n"
	c = harness.Start(t, options)
	require.NoError(t, os.Chmod(c.Path("/srv/jails"), 0o700)) // for range
	for _, path := range []string{"/etc/subuid", "/etc/subgid"} {
		require.NoError(t, os.Chmod(c.Path(path), 0o644)) // nobody else may write them
	}
	return c, gpus
}

// TestJobsComputeOnTheirGPUs: a job in a jail, whoever is root there, computes on the GPU that Slurm gave it. One without a GPU has none.
func TestJobsComputeOnTheirGPUs(t *testing.T) {
	c, gpus := startCluster(t)
	require.NoError(t, os.WriteFile(c.Path("/srv/jails/debian/usr/local/bin/add"), []byte(readText(t, c.Path("/opt/add"))), 0o755))
	in := func(script string, args ...string) harness.Result {
		return c.Run(harness.Alice, append(append([]string{"srun", "-Q", "-wn1", "--jail=debian"}, args...), "sh", "-c", script)...)
	}
	for _, root := range []string{"", "self", "range"} {
		args := []string{"--gres=gpu:1"}
		if root != "" {
			args = append(args, "--jail-root="+root)
		}
		harness.RequireOutput(t, "1 GPU, sums are right", in("add", args...))
		list := in("nvidia-smi -L", args...)
		require.Zero(t, list.Code, list)
		assert.Equal(t, 1, strings.Count(list.Stdout, "UUID: GPU-"), list)
		t.Logf("root %q: %s", root, strings.TrimSpace(list.Stdout))
	}
	harness.RequireOutput(t, "", in("ls /dev | grep -E '^nvidia[0-9]+$' || true"))
	without := in("add")
	assert.Equal(t, 1, without.Code, without)
	assert.Regexp(t, "^cuInit: error [0-9]+\n$", without.Stdout, "%v", without)
	whole := in("add", fmt.Sprintf("--gres=gpu:%d", len(gpus)))
	harness.RequireOutput(t, fmt.Sprintf("%d GPU, sums are right", len(gpus)), whole)
}

// TestCheckSeesTheDriver: gojail check has nothing to say against the GPUs and their driver.
func TestCheckSeesTheDriver(t *testing.T) {
	c, _ := startCluster(t)
	r := c.Gojail("n1", "check")
	t.Log(r.Stdout)
	for line := range strings.Lines(r.Stdout) {
		if strings.Contains(line, "GPU") || strings.Contains(line, "gpu") || strings.Contains(line, "cdi") || strings.Contains(line, "CDI") {
			assert.NotContains(t, line, "FAIL", r)
		}
	}
}

// TestHealthOfRealGPUs: no check of the GPUs fails or remains without a result on a machine whose GPUs work.
func TestHealthOfRealGPUs(t *testing.T) {
	findGPUs(t)
	driver := findDriver(t)
	repo, err := harness.Repository()
	require.NoError(t, err)
	build := os.Getenv("GOJAIL_RELEASE")
	if build != "" {
		build = filepath.Join("releases", build)
	}
	conf := filepath.Join(t.TempDir(), "health.toml")
	library, smi := "libnvidia-ml.so.1", ""
	for _, file := range driver {
		switch {
		case strings.Contains(file, "libnvidia-ml.so"):
			library = file
		case strings.HasSuffix(file, "nvidia-smi"):
			smi = file
		}
	}
	require.NoError(t, os.WriteFile(conf, fmt.Appendf(nil, "state = %q\n[gpu]\nlibrary = %q\nsmi = %q\n", t.TempDir(), library, smi), 0o644))
	cmd := exec.Command(filepath.Join(repo, "build", build, "sbin/gojail-healthcheck"), "--config="+conf, "--dry-run")
	out, err := cmd.CombinedOutput()
	t.Logf("%v\n%s", err, out)
	seen := 0
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "gpu-") && !strings.Contains(line, "nvidia-smi") && !strings.Contains(line, "xid") {
			continue
		}
		seen++
		assert.NotRegexp(t, `(?i)\b(fail|unknown)\b`, line)
	}
	assert.Greater(t, seen, 15, "checks of GPUs")
}
