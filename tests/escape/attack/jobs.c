// SPDX-License-Identifier: Apache-2.0
//
// Attacks on processes of other jobs.

#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static void see_one(pid_t pid)
{
	const char *tag = victim_of(pid);
	if (tag)
		found("%s is process %d", tag, pid);
}

static void see(void)
{
	each_pid(see_one);
	judge("no other job's process is in /proc");
}

static void environ_of(pid_t pid)
{
	char path[64], byte;
	const char *tag = victim_of(pid);
	snprintf(path, sizeof path, "/proc/%d/environ", pid);
	int fd = tag ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0 && read(fd, &byte, 1) == 1)
		found("the environment of %s", tag);
	close(fd);
}

static void read_environ(void)
{
	each_pid(environ_of);
	judge("no other job's environment can be read");
}

// name is what a message calls a process: the victim's tag where /proc shows it.
static const char *name(pid_t pid)
{
	static char text[100];
	const char *tag = victim_of(pid);
	snprintf(text, sizeof text, "process %d (%s)", pid, tag ? tag : "hidden");
	return text;
}

// A number without a process is no process: kill(2) has ESRCH for it, and so have the others.
static void signal_one(pid_t pid)
{
	if (kill(pid, victim_of(pid) ? SIGUSR1 : 0) == 0)
		found("%s", name(pid));
}

static void signals(void)
{
	each_pid(signal_one);
	judge("no process outside of the job takes a signal");
}

static void memory_of(pid_t pid)
{
	char copy[sizeof secret] = "";
	struct iovec here = {copy, sizeof copy}, there = {secret, sizeof copy};
	if (process_vm_readv(pid, &here, 1, &there, 1, 0) == sizeof copy && !strcmp(copy, secret))
		found("the memory of %s", name(pid));
}

static void memory(void)
{
	each_pid(memory_of);
	judge("no other process's memory can be read");
}

static void trace_one(pid_t pid)
{
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0)
		escaped("attached to %s", name(pid)); // the end of this process lets it go
}

static void trace(void)
{
	each_pid(trace_one);
	held("no process outside of the job can be attached to");
}

static void steal_one(pid_t pid)
{
	int process = syscall(SYS_pidfd_open, pid, 0);
	if (process < 0)
		return;
	for (int fd = 0; fd < 16; fd++) {
		int copy = syscall(SYS_pidfd_getfd, process, fd, 0);
		if (copy >= 0)
			escaped("took descriptor %d of %s", fd, name(pid));
	}
	close(process);
}

static void steal(void)
{
	each_pid(steal_one);
	held("no descriptor of a process outside of the job can be taken");
}

const struct attack job_attacks[] = {
	{"see", see},
	{"environ", read_environ},
	{"signal", signals},
	{"memory", memory},
	{"ptrace", trace},
	{"pidfd_getfd", steal},
	{},
};
