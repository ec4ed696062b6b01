// SPDX-License-Identifier: Apache-2.0
//
// Attacks of a program of the jail that the administrator runs, on what root might lend it: its uid, its rights over
// files, munge, the network, its keys and its open files.

#include "attack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

// node_uid finds which uid of the node this process has, by the map of its user namespace.
static void node_uid(void)
{
	unsigned inside, outside, count;
	FILE *map = fopen("/proc/self/uid_map", "re");
	if (!map)
		held_errno("uid_map");
	while (fscanf(map, "%u %u %u", &inside, &outside, &count) == 3)
		if (geteuid() >= inside && geteuid() - inside < count && geteuid() - inside + outside == 0)
			escaped("it is uid 0 of the node");
	held("it is not uid 0 of the node");
}

// node_rights finds capabilities that count outside of a user namespace.
static void node_rights(void)
{
	char line[200];
	unsigned long long effective = 0;
	unsigned inside = 0, outside = 0, count = 0;
	FILE *status = fopen("/proc/self/status", "re"), *map = fopen("/proc/self/uid_map", "re");
	while (status && fgets(line, sizeof line, status))
		sscanf(line, "CapEff: %llx", &effective);
	if (!map || fscanf(map, "%u %u %u", &inside, &outside, &count) != 3)
		held_errno("uid_map");
	if (effective && count == 4294967295u)
		escaped("it has the capabilities %llx", effective);
	held("its capabilities count in a user namespace, if it has any");
}

static void munge_socket(void)
{
	const char *const paths[] = {"/run/munge/munge.socket.2", "/var/run/munge/munge.socket.2",
				     "/proc/1/root/run/munge/munge.socket.2"};
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
		struct sockaddr_un address = {.sun_family = AF_UNIX};
		strcpy(address.sun_path, paths[i]);
		int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(s, (struct sockaddr *)&address, sizeof address) == 0)
			found("connected to %s", paths[i]);
		close(s);
	}
	judge("munge cannot be asked");
}

// abstract_pair sends to the victims' datagram sockets, from one end of a pair.
static void abstract_pair(void)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) < 0)
		held_errno("a pair of datagram sockets");
	for (const char *const *tag = victims; *tag; tag++) {
		struct sockaddr_un address = {.sun_family = AF_UNIX};
		int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, VICTIM "%s.dgram", *tag);
		if (sendto(pair[0], "x", 1, MSG_DONTWAIT, (struct sockaddr *)&address,
			   offsetof(struct sockaddr_un, sun_path) + 1 + length) == 1)
			found("sent to %s", *tag);
	}
	judge("no abstract datagram socket outside of the job takes data");
}

static void opened(const char *what, int s)
{
	if (s < 0)
		held_errno(what);
	escaped("opened %s", what);
}

static void packet_socket(void)
{
	opened("a packet socket", socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL)));
}
static void raw_socket(void) { opened("a raw socket", socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP)); }

// others_home writes to each home directory but alice's, whose job it is.
static void others_home(void)
{
	DIR *homes = opendir("/home");
	for (struct dirent *entry; homes && (entry = readdir(homes));) {
		char path[400];
		if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "alice"))
			continue;
		snprintf(path, sizeof path, "/home/%s/lent", entry->d_name);
		if (open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) >= 0)
			found("wrote %s", path);
		unlink(path);
	}
	judge("no other user's home can be written");
}

static void roots_file(void)
{
	int fd = open("/etc/of-root", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		held_errno("/etc/of-root");
	escaped("read a file of root's");
}

// streams tries what the caller's descriptors do beside reading or writing in order. Its own output is a pipe or a
// terminal.
static void streams(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		char path[40];
		struct stat st;
		if (fstat(fd, &st) < 0)
			continue;
		if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode) || S_ISSOCK(st.st_mode))
			found("%d is a file of the caller's", fd);
		if (S_ISREG(st.st_mode) && fchmod(fd, 0666) == 0)
			found("changed its mode");
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		int again = S_ISREG(st.st_mode) ? open(path, O_RDWR | O_CLOEXEC) : -1;
		if (again >= 0 && pwrite(again, "lent", 4, 0) == 4)
			found("wrote through %s", path);
		if (S_ISCHR(st.st_mode) && ioctl(fd, TIOCSTI, "#") == 0)
			found("pushed input into %d", fd);
	}
	judge("no descriptor is a file of the caller's");
}

// session_key looks for the key of with_key in the session's keyring.
static void session_key(void)
{
	enum { SEARCH = 10, SESSION_KEYRING = -3 }; // keyctl(2)
	if (syscall(SYS_keyctl, SEARCH, SESSION_KEYRING, "user", VICTIM "session", 0) >= 0)
		escaped("found the caller's key");
	held_errno("the caller's key");
}

// outside_signal looks for a process that is not of this jail, by signal 0.
static void outside_signal(void)
{
	char path[64];
	if (kill(-1, 0) < 0 && errno == EPERM)
		held("no other process can be signalled");
	for (pid_t pid = 2; pid < 70000; pid++) {
		snprintf(path, sizeof path, "/proc/%d/root/" OUTSIDE, pid);
		if (kill(pid, 0) == 0 && access(path, F_OK) == 0)
			found("may signal %d, which is outside", pid);
	}
	judge("no process outside can be signalled");
}

int with_key(char **command)
{
	enum { JOIN_SESSION_KEYRING = 1, SESSION_KEYRING = -3 };
	if (syscall(SYS_keyctl, JOIN_SESSION_KEYRING, NULL) < 0 ||
	    syscall(SYS_add_key, "user", VICTIM "session", secret, sizeof secret, SESSION_KEYRING) < 0) {
		fprintf(stderr, "attack: keyctl: %s\n", strerror(errno));
		return 3;
	}
	execvp(command[0], command);
	fprintf(stderr, "attack: %s: %s\n", command[0], strerror(errno));
	return 127;
}

int without_landlock(char **command)
{
	enum { CREATE_RULESET = 444 }; // of all architectures
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CREATE_RULESET, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 4, .filter = filter};
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0) {
		fprintf(stderr, "attack: seccomp: %s\n", strerror(errno));
		return 3;
	}
	execvp(command[0], command);
	fprintf(stderr, "attack: %s: %s\n", command[0], strerror(errno));
	return 127;
}

const struct attack lent_attacks[] = {
	{"node-uid", node_uid},           {"node-rights", node_rights},       {"munge-socket", munge_socket},
	{"abstract-pair", abstract_pair}, {"packet-socket", packet_socket},   {"raw-socket", raw_socket},
	{"others-home", others_home},     {"roots-file", roots_file},         {"streams", streams},
	{"session-key", session_key},     {"outside-signal", outside_signal}, {},
};
