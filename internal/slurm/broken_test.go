// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// writeBroken makes a Slurm whose commands print that JSON, and what the release prints as text.
func writeBroken(t *testing.T, release, nodes, diag, format string) *Commands {
	t.Helper()
	c := &Commands{Dir: t.TempDir(), Timeout: time.Minute, Format: format}
	require.NoError(t, os.CopyFS(c.Dir, os.DirFS("testdata/"+release)))
	require.NoError(t, os.WriteFile(c.Dir+"/nodes.json", []byte(nodes), 0o644))
	require.NoError(t, os.WriteFile(c.Dir+"/sdiag.json", []byte(diag), 0o644))
	for name, of := range map[string]string{"scontrol": "nodes", "sdiag": "sdiag"} {
		text := fmt.Sprintf("#!/bin/sh\ncd %s\necho \"$*\" >>asked\necho 'error: a notice' >&2\ncase \"$*\" in\n--version) cat version.txt;;\n"+
			"*--json*) cat %[2]s.json;;\n*) cat %[2]s.txt;;\nesac\n", c.Dir, of)
		require.NoError(t, os.WriteFile(c.Dir+"/"+name, []byte(text), 0o755))
	}
	require.NoError(t, c.FindRelease(t.Context()))
	return c
}

// TestBrokenJSON: JSON that is not JSON, whatever makes it so, costs no node and no statistic, since the records come
// as text; the metric of odd records counts it. JSON that is whole is not asked for twice.
func TestBrokenJSON(t *testing.T) {
	const notice = "scontrol: warning: of a wrapper\n"
	breaks := map[string]func(string) string{
		"whole":                       func(text string) string { return text },
		"notice before":               func(text string) string { return notice + notice + "\n" + text },
		"byte order mark and a line":  func(text string) string { return "\uFEFF\n" + text },
		"notice after":                func(text string) string { return text + notice },
		"invalid UTF-8 in a text":     func(text string) string { return strings.Replace(text, `": ""`, "\": \"\xff\xfe\xed\xa0\x80\"", 1) },
		"half of a surrogate":         func(text string) string { return strings.Replace(text, `": ""`, `": "\ud800"`, 1) },
		"-control character":          func(text string) string { return strings.Replace(text, `": "`, "\": \"\x01", 1) },
		"-escape of a terminal":       func(text string) string { return strings.Replace(text, `": "`, "\": \"\x1b[31m", 1) },
		"-NUL":                        func(text string) string { return strings.Replace(text, `": "`, "\": \"\x00", 1) },
		"-new line in a text":         func(text string) string { return strings.Replace(text, `": "`, "\": \"a\nb", 1) },
		"-quote in a text":            func(text string) string { return strings.Replace(text, `": "`, `": "a "b" `, 1) },
		"-one quote in a text":        func(text string) string { return strings.Replace(text, `": "`, `": "a " `, 1) },
		"-backslash in a text":        func(text string) string { return strings.Replace(text, `": "`, `": "C:\new\q`, 1) },
		"-not a number":               func(text string) string { return strings.Replace(text, "\": 1", "\": NaN, \"x\": 1", 1) },
		"-infinite":                   func(text string) string { return strings.Replace(text, "\": 1", "\": -Infinity, \"x\": 1", 1) },
		"-trailing comma":             func(text string) string { return strings.Replace(text, `",`, `",,`, 1) },
		"-notice on the line":         func(text string) string { return "warning: " + text },
		"-notice within":              func(text string) string { return text[:len(text)/2] + "\n" + notice + text[len(text)/2:] },
		"-byte order mark":            func(text string) string { return "\uFEFF" + text },
		"-an object before":           func(text string) string { return "{\"errors\": []}\n" + text },
		"-two halves of two commands": func(text string) string { return text[:len(text)/2] + text[len(text)/3:] },
		"-cut off":                    func(text string) string { return text[:len(text)/2] },
		"-without its end":            func(text string) string { return strings.TrimRight(text, "\n}") },
		"-empty":                      func(string) string { return "" },
		"-null":                       func(string) string { return "null\n" },
		"-a list":                     func(string) string { return "[]\n" },
		"-a help text":                func(string) string { return "scontrol [<OPTION>] [<COMMAND>]\n" },
		"-too deep": func(text string) string {
			return strings.Replace(text, `": ""`, `": `+strings.Repeat("[", 20000)+strings.Repeat("]", 20000), 1)
		},
		"-other keys":        func(string) string { return "{\"nodez\": []}\n" },
		"-no records":        func(string) string { return `{"nodes": [], "statistics": {}, "errors": [], "warnings": []}` },
		"-records are null":  func(string) string { return `{"nodes": null, "statistics": null, "errors": null}` },
		"-records are empty": func(string) string { return `{"nodes": [{}, {}], "statistics": {"jobs_submitted": null}}` },
		"-records of another release": func(string) string {
			return `{"nodes": [{"node_name": "n1", "state": "IDLE"}], "statistics": {"jobs_submitted": {"set": false}}}`
		},
		"-an error, no records": func(string) string {
			return `{"nodes": [], "statistics": {}, "errors": [{"description": "no data_parser", "error_number": 9000}]}`
		},
		"-an error beside records": func(text string) string {
			return strings.Replace(text, `"errors": []`, `"errors": [{"description": "timed out", "error_number": 5004}]`, 1)
		},
	}
	nodes, err := os.ReadFile("testdata/24.11/nodes.json")
	require.NoError(t, err)
	diag, err := os.ReadFile("testdata/24.11/sdiag.json")
	require.NoError(t, err)
	wantNodes, err := readNodesJSON(bytes.NewReader(nodes))
	require.NoError(t, err)
	wantDiag, err := readDiagJSON(bytes.NewReader(diag))
	require.NoError(t, err)
	for name, breakText := range breaks {
		name, broken := strings.CutPrefix(name, "-")
		for _, format := range []string{Auto, JSON} {
			if !strings.Contains(string(diag), `": ""`) && breakText(string(diag)) == string(diag) && name != "whole" {
				diag = append([]byte("{\n  \"none\": \"\",\n"), diag[1:]...)
			}
			c := writeBroken(t, "24.11", breakText(string(nodes)), breakText(string(diag)), format)
			n, err := c.Nodes(t.Context())
			require.NoError(t, err, name)
			assert.Equal(t, namesOf(wantNodes), namesOf(n), name)
			assert.Equal(t, broken, n.Odd.Count == 1, "%s %+v", name, n.Odd)
			d, err := c.Diag(t.Context())
			require.NoError(t, err, name)
			assert.Equal(t, wantDiag.Values["jobs_submitted"], d.Values["jobs_submitted"], name)
			assert.Equal(t, broken, d.Odd.Count == 1, "%s %+v", name, d.Odd)
			asked, err := os.ReadFile(c.Dir + "/asked")
			require.NoError(t, err)
			want := map[bool]int{false: 3, true: 5}[broken]
			assert.Equal(t, want, strings.Count(string(asked), "\n"), "%s: %s", name, asked)
		}
	}
}

// TestClusterWithoutNodes: no node is no odd record if text says so, too.
func TestClusterWithoutNodes(t *testing.T) {
	for _, format := range []string{Auto, JSON, Text} {
		c := writeBroken(t, "24.11", `{"nodes": [], "errors": [], "warnings": []}`, "", format)
		require.NoError(t, os.WriteFile(c.Dir+"/nodes.txt", []byte(noNodes+"\n"), 0o644))
		n, err := c.Nodes(t.Context())
		require.NoError(t, err, format)
		assert.Equal(t, &Nodes{List: n.List}, n, format)
		assert.Empty(t, n.List, format)
		require.NoError(t, os.WriteFile(c.Dir+"/nodes.txt", nil, 0o644))
		_, err = c.Nodes(t.Context())
		assert.ErrorContains(t, err, "there is no node in it", format)
	}
}

// namesOf returns the nodes with what the exporter shows of all of them.
func namesOf(n *Nodes) (names []string) {
	for _, node := range n.List {
		names = append(names, fmt.Sprint(node.Name, " ", node.CPUs, " ", node.Partitions))
	}
	return names
}

// TestEachDamage: JSON that is cut off anywhere, or has one wrong byte anywhere, is no JSON, or has every node that the
// byte is not in; none is missing without a trace.
func TestEachDamage(t *testing.T) {
	const node = `{"name":"n%d","comment":"a, \"b\" {c}","state":["IDLE"],"cpus":4,"alloc_cpus":1,"partitions":["main"],"reason":"","gres":"gpu:2"}`
	whole := `{"nodes":[` + fmt.Sprintf(node, 1) + ",\n" + fmt.Sprintf(node, 2) + ",\n" + fmt.Sprintf(node, 3) + `],"last_update":{"set":true,"number":1},"errors":[]}`
	middle := []int{strings.Index(whole, fmt.Sprintf(node, 2)), strings.Index(whole, fmt.Sprintf(node, 3)) - len(",\n")}
	for at := range len(whole) - 1 {
		_, err := readNodesJSON(strings.NewReader(whole[:at]))
		require.Error(t, err, "cut off after %d bytes", at)
	}
	for at := middle[0]; at < middle[1]; at++ {
		for _, wrong := range []string{"", "x", `"`, `\`, "{", "}", "[", "]", ",", ":", "\n", "\x00", "\xff", "7", "/"} {
			text := whole[:at] + wrong + whole[at+1:]
			n, err := readNodesJSON(strings.NewReader(text))
			if err != nil {
				continue
			}
			got, want := namesOf(n), []string{"n1 4 [main]", "n3 4 [main]"}
			require.NotEmpty(t, got, text)
			assert.Equal(t, want, []string{got[0], got[len(got)-1]}, text)
			assert.Equal(t, 3, len(n.List)+min(n.Odd.Count, 3-len(n.List)), text)
		}
	}
}

// TestNotices: lines that a wrapper or a library prints before the records cost nothing; alone they are an error, since
// no answer of Slurm's is that.
func TestNotices(t *testing.T) {
	for _, notice := range []string{"warning: x\n", "\n\n", "{}\n", "a\nb\nc\n", "NodeName\n", "\x00\xff\n", strings.Repeat("x", 1<<20) + "\n"} {
		n, err := readNodesText(strings.NewReader(notice + printNode("n1", "", "", "") + printNode("n2", "", "", "")))
		require.NoError(t, err, "%.60q", notice)
		assert.Equal(t, []string{"n1 4 [main]", "n2 4 [main]"}, namesOf(n), "%.60q", notice)
		_, err = readNodesText(strings.NewReader(notice))
		assert.Error(t, err, "%.60q", notice)
		record, err := readRecord(notice+printNode("n1", "disk", "", ""), "n1")
		require.NoError(t, err, "%.60q", notice)
		assert.Equal(t, "disk", record.Reason)

		const mark = "@0123456789abcdef"
		j := newJobs()
		odd, err := readRows(strings.NewReader(notice+mark+separator+strings.Join([]string{"RUNNING", "main", "n1", "N/A", "None"}, separator)+"\n"), mark, len(jobColumns), j.add)
		require.NoError(t, err, "%.60q", notice)
		assert.Zero(t, odd.Count)
		assert.Equal(t, map[string]int{"running": 1}, j.finish(odd).States)
		_, err = readRows(strings.NewReader(notice), mark, len(jobColumns), j.add)
		assert.ErrorContains(t, err, "where a row should begin")
	}
}
