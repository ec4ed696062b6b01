// SPDX-License-Identifier: Apache-2.0

// exporter: what gojail-exporter costs on a large cluster. Slurm's commands are scripts that print what the real ones
// printed on a small cluster, scaled; the exporter is the one that is built, and is scraped over HTTP.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	nodes := flag.Int("nodes", 5000, "number of nodes")
	jobs := flag.Int("jobs", 100000, "number of jobs")
	intervals := flag.Int("intervals", 4, "intervals that are measured")
	flag.Parse()
	fmt.Printf("%d nodes, %d jobs, %d intervals\n\n", *nodes, *jobs, *intervals)
	fmt.Println("| format | output of commands | CPU per interval | CPU per scrape | scrape | memory at most | series | page |")
	fmt.Println("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for _, format := range []string{"json", "text"} {
		if err := measure(format, *nodes, *jobs, *intervals); err != nil {
			fmt.Fprintln(os.Stderr, "bench-exporter:", err)
			os.Exit(1)
		}
	}
}

const (
	address = "127.0.0.1:19948"
	release = "26.05"
	scrapes = 5
	limit   = 2 * time.Minute
)

func measure(format string, nodes, jobs, intervals int) error {
	dir, err := os.MkdirTemp("", "gojail-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "gojail-exporter")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", program, "./exporter/cmd/gojail-exporter").CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build gojail-exporter: %s", out)
	}
	if err := writeCommands(dir, release, nodes, jobs); err != nil {
		return err
	}
	exporter := exec.Command(program, "--slurm-bin="+dir, "--format="+format, "--interval=10s", "--timeout=10s", "--listen-address="+address)
	if err := exporter.Start(); err != nil {
		return err
	}
	defer func() {
		exporter.Process.Signal(os.Interrupt)
		exporter.Wait()
	}()
	if _, err := waitForPolls(2); err != nil { // the first one is not like the others
		return err
	}
	begin, err := readCPU(exporter.Process.Pid)
	if err != nil {
		return err
	}
	time.Sleep(time.Duration(intervals) * 10 * time.Second)
	idle, err := readCPU(exporter.Process.Pid)
	if err != nil {
		return err
	}
	start := time.Now()
	var page string
	for range scrapes {
		if page, err = scrape(); err != nil {
			return err
		}
	}
	took := time.Since(start) / scrapes
	after, err := readCPU(exporter.Process.Pid)
	if err != nil {
		return err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", exporter.Process.Pid))
	if err != nil {
		return err
	}
	fmt.Printf("| %s | %.1f MB | %.2f s | %.2f s | %.2f s | %s MB | %d | %.1f MB |\n", format, float64(sizeOf(dir, format))/1e6,
		(idle-begin).Seconds()/float64(intervals), (after-idle).Seconds()/scrapes, took.Seconds(), findPeak(string(status)), countSeries(page), float64(len(page))/1e6)
	return nil
}

// waitForPolls waits until the exporter has asked for jobs that often, and returns its page.
func waitForPolls(times float64) (string, error) {
	for begin := time.Now(); time.Since(begin) < limit; time.Sleep(100 * time.Millisecond) {
		page, err := scrape()
		if err != nil {
			continue
		}
		for line := range strings.Lines(page) {
			if value, found := strings.CutPrefix(line, `gojail_exporter_commands_total{source="jobs"} `); found {
				if n, _ := strconv.ParseFloat(strings.TrimSpace(value), 64); n >= times && strings.Contains(page, `gojail_exporter_data_stale{source="nodes"} 0`) {
					return page, nil
				}
			}
		}
	}
	return "", errors.New("the exporter has no data")
}

func scrape() (string, error) {
	answer, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	return string(page), err
}

// readCPU returns the CPU time of a process, without that of its children: fields 14 and 15 of proc_pid_stat(5).
func readCPU(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond, errors.Join(err1, err2)
}

// findPeak returns VmHWM in megabytes.
func findPeak(status string) string {
	for line := range strings.Lines(status) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			n, _ := strconv.Atoi(fields[1])
			return strconv.Itoa(n / 1024)
		}
	}
	return "?"
}

func countSeries(page string) (n int) {
	lines := bufio.NewScanner(strings.NewReader(page))
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "gojail_") {
			n++
		}
	}
	return n
}

// sizeOf returns how much the commands of an interval print.
func sizeOf(dir, format string) (size int64) {
	for _, name := range []string{"squeue.txt", "nodes." + extension(format), "sdiag." + extension(format)} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			size += info.Size()
		}
	}
	return size
}

func extension(format string) string {
	if format == "json" {
		return "json"
	}
	return "txt"
}
