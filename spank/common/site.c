/* SPDX-License-Identifier: Apache-2.0 */
#include "common/site.h"

#include "common/clock.h"
#include "common/fd.h"
#include "common/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/mount.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* A line "rule": a jail, a word, and an account's name, which Go limits to 128 bytes. */
#define RULE_MAX (GOJAIL_NAME_MAX + GOJAIL_LOGIN_NAME_MAX + 64)

enum site_state { FRESH, STALE, FAILED };

/* Reads a line "word value" and moves on to the next. Returns the value, or NULL if the line has another word, or the
 * value does not fit. */
static const char *read_line(const char **at, const char *word, char *value, size_t size)
{
	size_t length = strlen(word);
	const char *end = strchr(*at, '\n');

	if (!end || strncmp(*at, word, length) || (*at)[length] != ' ' || (size_t)(end - *at) - length > size)
		return NULL;
	snprintf(value, size, "%.*s", (int)(end - *at - (long)length - 1), *at + length + 1);
	*at = end + 1;
	return value;
}

/* Parses the value of the line "session". Returns 0, or -1 if another version wrote it. */
static int parse_session(const char *value, struct session_rules *rules)
{
	char without_job[8];

	if (sscanf(value, "%7s %1023s %1023s", without_job, rules->shell, rules->exempt) != 3 || rules->shell[0] != '/')
		return -1;
	rules->node_without_job = strcmp(without_job, "node") == 0;
	return 0;
}

/* Parses the value of the line "login", and passes over the lines "rule", which begin at *at. Returns 0, or -1 if
 * another version wrote them. */
static int parse_login(const char *value, const char **at, struct login_rules *rules)
{
	char rest[RULE_MAX], *end;
	long linger = strtol(value, &end, 10);

	if (end == value || *end || linger < 0 || linger > INT_MAX)
		return -1;
	rules->linger_ms = (int)linger;
	rules->text = *at;
	while (read_line(at, "rule", rest, sizeof(rest)))
		;
	return 0;
}

static int parse_head(struct site *site, const char *identity, const char *network)
{
	char value[GOJAIL_PATH_MAX], *end;
	const char *at = site->text;
	long long until;

	if (!read_line(&at, "gojail-site", value, sizeof(value)) || atoi(value) != GOJAIL_VERSION ||
	    !read_line(&at, "config", value, sizeof(value)) || strcmp(value, identity) ||
	    !read_line(&at, "network", value, sizeof(value)) || strcmp(value, network) ||
	    !read_line(&at, "until", value, sizeof(value)))
		return -1;
	until = strtoll(value, &end, 10);
	if (*end || (until && until < (long long)time(NULL)) ||
	    !read_line(&at, "default", site->default_jail, sizeof(site->default_jail)) ||
	    !read_line(&at, "none", value, sizeof(value)))
		return -1;
	site->none_allowed = strcmp(value, "allow") == 0;
	if (!read_line(&at, "deadline", value, sizeof(value)))
		return -1;
	site->deadline_ms = atoi(value);
	if (site->deadline_ms <= 0 || !read_line(&at, "scratch", site->scratch, sizeof(site->scratch)) ||
	    site->scratch[0] != '/' || !read_line(&at, "summary", value, sizeof(value)) ||
	    !read_line(&at, "session", value, sizeof(value)) || parse_session(value, &site->session) < 0 ||
	    !read_line(&at, "login", value, sizeof(value)) || parse_login(value, &at, &site->login) < 0)
		return -1;
	site->jails = at;
	/* A file that was cut short lacks its last line. */
	return strlen(at) >= 4 && strcmp(at + strlen(at) - 4, "end\n") == 0 ? 0 : -1;
}

void site_read_summary(const struct node *node, char *field, size_t size)
{
	static char text[4 * GOJAIL_PATH_MAX]; /* the line is among the first ones */
	char path[GOJAIL_PATH_MAX + 16];
	const char *line;

	snprintf(path, sizeof(path), "%s/" GOJAIL_SITE, node->state);
	read_file(AT_FDCWD, path, text, sizeof(text));
	field[0] = '\0';
	line = strstr(text, "\nsummary ");
	if (line && line[strlen("\nsummary ")] != '-')
		snprintf(field, size, "%.*s", (int)strcspn(line + strlen("\nsummary "), "\n"),
			 line + strlen("\nsummary "));
}

static void write_identity(const struct stat *st, char *text, size_t size)
{
	snprintf(text, size, "%llu %llu %lld %lld %ld %lld %ld", (unsigned long long)st->st_dev,
		 (unsigned long long)st->st_ino, (long long)st->st_size, (long long)st->st_mtim.tv_sec,
		 st->st_mtim.tv_nsec, (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
}

/* Writes the identity of network.toml beside gojail.toml; "-" where a site has none. Returns 0, or -1 with a fault. */
static int network_identity(const struct node *node, char *text, size_t size, struct fault *fault)
{
	const char *slash = strrchr(node->config, '/');
	char path[GOJAIL_PATH_MAX + 16];
	struct stat st;

	snprintf(path, sizeof(path), "%.*s/" GOJAIL_NETWORK_CONFIG, slash ? (int)(slash - node->config) : 0,
		 node->config);
	if (stat(path, &st) == 0)
		write_identity(&st, text, size);
	else if (errno == ENOENT)
		snprintf(text, size, "-");
	else
		return fault_set(fault, "cannot read the status of %s: %s; ask your administrator", path,
				 strerror(errno));
	return 0;
}

/* Writes the identity of gojail.toml, which a chmod, a touch and a rename change. Returns 0, or -1 with a fault. */
static int config_identity(const struct node *node, char *text, size_t size, struct fault *fault)
{
	char directory[GOJAIL_PATH_MAX];
	struct stat st;

	snprintf(directory, sizeof(directory), "%s", node->config);
	directory[strrchr(directory, '/') == directory ? 1 : strrchr(directory, '/') - directory] = '\0';
	if (stat(node->config, &st) < 0)
		return fault_set(fault,
				 "cannot read the configuration %s: %s; no step is started "
				 "without it: ask your administrator",
				 node->config, strerror(errno));
	write_identity(&st, text, size);
	/* Go has checked the file. A user who may write to its directory can put another file there at any time. */
	if (stat(directory, &st) < 0 || st.st_uid != 0 || (st.st_mode & 022))
		return fault_set(fault,
				 "the directory %s of the configuration can be changed by others than root; "
				 "ask your administrator to run: chown root %s; chmod go-w %s",
				 directory, directory, directory);
	return 0;
}

static enum site_state site_read(struct site *site, const struct node *node, struct fault *fault)
{
	char path[GOJAIL_PATH_MAX + 8], identity[256], network[256];
	struct stat st;
	ssize_t got;

	site_close(site);
	if (config_identity(node, identity, sizeof(identity), fault) < 0 ||
	    network_identity(node, network, sizeof(network), fault) < 0)
		return FAILED;
	snprintf(path, sizeof(path), "%s/" GOJAIL_SITE, node->state);
	scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return STALE;
	/* The state directory is root's; a site file that is not was not written by us. */
	if (!S_ISREG(st.st_mode) || st.st_uid != 0 || (st.st_mode & 022) || st.st_size > GOJAIL_SITE_MAX) {
		fault_set(fault, "%s is not a file that only root can change; ask your administrator to remove it",
			  path);
		return FAILED;
	}
	site->text = malloc((size_t)st.st_size + 1);
	if (!site->text || (got = read(fd, site->text, (size_t)st.st_size)) < 0)
		return STALE;
	site->text[got] = '\0';
	return parse_head(site, identity, network) == 0 ? FRESH : STALE;
}

int site_open(struct site *site, const struct node *node, struct fault *fault)
{
	int64_t until = clock_ms() + GOJAIL_DEFAULT_DEADLINE_MS;
	struct launch launch;

	for (int attempt = 0; attempt < 3; attempt++) {
		enum site_state state = site_read(site, node, fault);

		if (state != STALE)
			return state == FRESH ? 0 : -1;
		launch_prepare(&launch, node, "site", until);
		if (launch_run(&launch, node, until, fault) < 0)
			return -1;
	}
	return fault_set(fault,
			 "the configuration %s keeps changing, or %s/site cannot be written; "
			 "ask your administrator",
			 node->config, node->state);
}

void site_close(struct site *site)
{
	free(site->text);
	*site = (struct site){0};
}

static bool has_group(const struct user *user, gid_t gid)
{
	if (user->gid == gid)
		return true;
	for (int i = 0; i < user->ngroups; i++)
		if (user->groups[i] == gid)
			return true;
	return false;
}

/* Reports whether two names are one account's; a name service may add its domain to one of them, and ignore case. */
static bool is_same_account(const char *name, const char *other)
{
	size_t length = strcspn(name, "@");

	return strcspn(other, "@") == length && strncasecmp(name, other, length) == 0;
}

int site_find_login(const struct site *site, const struct user *user, const char *account, char *jail, size_t size,
		    struct fault *fault)
{
	char value[RULE_MAX], name[GOJAIL_NAME_MAX + 1], kind[16], of[RULE_MAX];
	const char *at = site->login.text;

	while (site->login.linger_ms && read_line(&at, "rule", value, sizeof(value))) {
		unsigned id;

		if (sscanf(value, "%64s %15s %255s", name, kind, of) != 3)
			return fault_set(fault, "the site file is damaged; ask your administrator");
		id = (unsigned)strtoul(of, NULL, 10);
		if (strcmp(kind, "unknown-group") == 0 ||
		    (strcmp(kind, "unknown-user") == 0 && is_same_account(of, account)))
			return fault_set(fault,
					 "the %s \"%s\" of login.rules cannot be looked up, so your jail is unknown; "
					 "connect again in a minute, "
					 "or ask your administrator to run: gojail check",
					 kind + strlen("unknown-"), of);
		if (strcmp(kind, "all") == 0 || (strcmp(kind, "uid") == 0 && id == user->uid) ||
		    (strcmp(kind, "gid") == 0 && has_group(user, id))) {
			snprintf(jail, size, "%s", name);
			return 1;
		}
	}
	return 0;
}

/* Moves on to the first line of the next jail, and copies its name. Reports whether there is one. */
static bool next_jail(const char **at, char *name, size_t size)
{
	while (**at && !read_line(at, "jail", name, size))
		*at = strchr(*at, '\n') + 1; /* the last line is whole (parse_head) */
	return **at;
}

/* Sets a fault with the names of all jails, for a user who mistyped one. */
static int unknown_jail(const struct site *site, const char *name, struct fault *fault)
{
	char known[512] = "", other[GOJAIL_NAME_MAX + 1];
	const char *at = site->jails;
	size_t used = 0;

	while (next_jail(&at, other, sizeof(other)))
		if (used + strlen(other) < sizeof(known) - 8)
			used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", used ? ", " : "", other);
	return fault_set_request(fault, "there is no jail \"%s\" on this node; choose one of: %s", name,
				 known[0] ? known : "(none is configured)");
}

struct word {
	const char *name;
	uint32_t bit;
};

#define TABLE(words) words, sizeof(words) / sizeof((words)[0])

/* Parses words with separators between them. Returns 0, or -1 at a word that is not in the table, which another version
 * has written. */
static int parse_words(char *list, const char *separators, const struct word *table, size_t count, uint32_t *bits)
{
	char *rest = NULL;

	for (char *word = strtok_r(list, separators, &rest); word; word = strtok_r(NULL, separators, &rest)) {
		size_t i = 0;

		while (i < count && strcmp(word, table[i].name))
			i++;
		if (i == count)
			return -1;
		*bits |= table[i].bit;
	}
	return 0;
}

/* Words of the line "isolate" that are no kinds of namespace, beside GOJAIL_REQUEST_...: never sent to a holder. */
enum { NO_NEW_PRIVS = 1 << 28, SCOPE = 1 << 29, CGROUP = 1 << 30 };

/* Parses the line "isolate". Returns 0 or -1. */
static int parse_isolate(char *value, struct jail *jail)
{
	static const struct word known[] = {{"pid", GOJAIL_REQUEST_PID},
					    {"ipc", GOJAIL_REQUEST_IPC},
					    {"uts", GOJAIL_REQUEST_UTS},
					    {"no_new_privs", NO_NEW_PRIVS},
					    {"scope", SCOPE},
					    {"cgroup", CGROUP},
					    {"-", 0}};
	uint32_t words = 0;

	if (parse_words(value, " ", TABLE(known), &words) < 0)
		return -1;
	jail->no_new_privs = words & NO_NEW_PRIVS;
	jail->scope = words & SCOPE;
	jail->cgroup = words & CGROUP;
	jail->namespaces = words & ~(uint32_t)(NO_NEW_PRIVS | SCOPE | CGROUP);
	return 0;
}

#define MOUNT_MUNGE 0x80000000u /* beside GOJAIL_MOUNT_...: never sent to a holder */
#define MOUNT_KINDS                                                                                                    \
	(GOJAIL_MOUNT_OVER | GOJAIL_MOUNT_IN | GOJAIL_MOUNT_ACCOUNT | GOJAIL_MOUNT_JOB | GOJAIL_MOUNT_SCRIPT |         \
	 GOJAIL_MOUNT_UPPER | GOJAIL_MOUNT_ROOT | MOUNT_MUNGE)

/* Adds a mount of type bind. Returns 0, or -1 if no such mount is known, or it is the second. */
static int add_bind(struct jail *jail, const struct gojail_mount *mount, const char *path)
{
	struct bind_mount *bind = mount->how == GOJAIL_MOUNT_JOB    ? &jail->tmp :
				  mount->how == GOJAIL_MOUNT_SCRIPT ? &jail->script :
				  mount->how == GOJAIL_MOUNT_UPPER  ? &jail->upper :
				  mount->how == MOUNT_MUNGE         ? &jail->munge :
								      NULL;

	if (!bind || bind->path[0])
		return -1;
	bind->attributes = mount->attributes;
	snprintf(bind->path, sizeof(bind->path), "%s", path);
	return 0;
}

/* Adds a mount that a holder makes. Returns 0, or -1 if the holder would not understand it. */
static int add_mount(struct jail *jail, struct gojail_mount *mount, const char *path)
{
	if (jail->nmounts == GOJAIL_JOB_MOUNTS_MAX || (mount->how & MOUNT_MUNGE) ||
	    ((mount->how & GOJAIL_MOUNT_NET) && !(mount->how & (GOJAIL_MOUNT_OVER | GOJAIL_MOUNT_IN))) ||
	    ((mount->how & GOJAIL_MOUNT_MKDIR) && !(mount->how & GOJAIL_MOUNT_IN)))
		return -1;
	/* The batch script's is mounted on the parent of a tree, which has the path. */
	if (mount->how != GOJAIL_MOUNT_SCRIPT &&
	    snprintf(mount->destination, sizeof(mount->destination), "%s", path) >= (int)sizeof(mount->destination))
		return -1;
	jail->mounts[jail->nmounts++] = *mount;
	return 0;
}

/* Parses the line "mount": HOW TYPE FLAGS OPTIONS PATH. Returns 0, or -1 if a part of it is not known. */
static int parse_mount(char *line, struct jail *jail)
{
	static const struct word hows[] = {
		{"over", GOJAIL_MOUNT_OVER}, {"in", GOJAIL_MOUNT_IN},         {"account", GOJAIL_MOUNT_ACCOUNT},
		{"job", GOJAIL_MOUNT_JOB},   {"script", GOJAIL_MOUNT_SCRIPT}, {"upper", GOJAIL_MOUNT_UPPER},
		{"root", GOJAIL_MOUNT_ROOT}, {"munge", MOUNT_MUNGE},          {"mkdir", GOJAIL_MOUNT_MKDIR},
		{"net", GOJAIL_MOUNT_NET},
	};
	static const struct word flags[] = {{"ro", MOUNT_ATTR_RDONLY},
					    {"nosuid", MOUNT_ATTR_NOSUID},
					    {"nodev", MOUNT_ATTR_NODEV},
					    {"noexec", MOUNT_ATTR_NOEXEC},
					    {"-", 0}};
	struct gojail_mount mount = {0};
	char *path = NULL, *how = strtok_r(line, " ", &path), *type = strtok_r(NULL, " ", &path),
	     *set = strtok_r(NULL, " ", &path), *options = strtok_r(NULL, " ", &path);

	if (!options || path[0] != '/' || parse_words(how, ",", TABLE(hows), &mount.how) < 0 ||
	    parse_words(set, ",", TABLE(flags), &mount.attributes) < 0 ||
	    __builtin_popcount(mount.how & MOUNT_KINDS) != 1 ||
	    snprintf(mount.type, sizeof(mount.type), "%s", type) >= (int)sizeof(mount.type) ||
	    snprintf(mount.options, sizeof(mount.options), "%s", options[0] == '-' ? "" : options) >=
		    (int)sizeof(mount.options) ||
	    ((mount.how & GOJAIL_MOUNT_SCRIPT) && strcmp(path, jail->spool)))
		return -1;
	if (strcmp(type, "bind") == 0 && !(mount.how & GOJAIL_MOUNT_ACCOUNT))
		return add_bind(jail, &mount, path);
	return add_mount(jail, &mount, path);
}

/* Adds a device node of a GPU. Returns 0, or -1 if there is no room for it, or no path: a job with
 * a part of its devices would find no GPU. */
static int add_gpu(const char *value, struct jail *jail)
{
	char *path;
	unsigned long index = strtoul(value, &path, 10);

	if (jail->ngpus == GOJAIL_GPU_NODES_MAX || path == value || path[0] != ' ' || path[1] != '/' ||
	    snprintf(jail->gpus[jail->ngpus].path, GOJAIL_GPU_PATH_MAX, "%s", path + 1) >= GOJAIL_GPU_PATH_MAX)
		return -1;
	jail->gpus[jail->ngpus++].index = (unsigned)index;
	return 0;
}

int site_resolve_root(const struct jail *jail, char *mode, size_t size, struct fault *fault)
{
	const char *found = strstr(jail->roots, mode); /* neither word is part of the other */

	if (!mode[0] || strcmp(mode, "none") == 0) {
		mode[0] = '\0';
		return 0;
	}
	if (jail->roots[0] == '-')
		return fault_set_request(
			fault,
			"--jail-root: jail \"%s\" does not allow it; leave it out, or ask your administrator "
			"about jail_root in gojail.toml",
			jail->name);
	if (strcmp(mode, "any") == 0) {
		snprintf(mode, size, "%.*s", (int)strcspn(jail->roots, " "), jail->roots);
		return 0;
	}
	if ((strcmp(mode, "self") && strcmp(mode, "range")) || !found)
		return fault_set_request(fault, "--jail-root=%s: jail \"%s\" allows only %s", mode, jail->name,
					 jail->roots);
	return 0;
}

/* Parses the lines of a jail up to "access", in the order in which writeJail in gojail/site/site.go writes them.
 * Returns 0, or -1 if a line is missing or not known. */
static int parse_jail(const char **at, struct jail *jail)
{
	char value[GOJAIL_PATH_MAX + 256];

	if (!read_line(at, "key", jail->key, sizeof(jail->key)) || strlen(jail->key) != GOJAIL_KEY_LEN ||
	    !read_line(at, "source", jail->source, sizeof(jail->source)) || jail->source[0] != '/' ||
	    !read_line(at, "quota", value, sizeof(value)))
		return -1;
	jail->quota = strtoull(value, NULL, 10);
	if (!read_line(at, "spool", jail->spool, sizeof(jail->spool)))
		return -1;
	while (read_line(at, "mount", value, sizeof(value)))
		if (parse_mount(value, jail) < 0)
			return -1;
	if (!jail->nmounts || !jail->script.path[0] || !read_line(at, "net", jail->net, sizeof(jail->net)))
		return -1;
	jail->env = *at;
	while (read_line(at, "env", value, sizeof(value)) || read_line(at, "prepend", value, sizeof(value)))
		;
	while (read_line(at, "gpu", value, sizeof(value)))
		if (add_gpu(value, jail) < 0)
			return -1;
	if (!read_line(at, "isolate", value, sizeof(value)) || parse_isolate(value, jail) < 0 ||
	    !read_line(at, "bounding", value, sizeof(value)) || sscanf(value, "%" SCNx64, &jail->bounding) != 1 ||
	    !read_line(at, "root", jail->roots, sizeof(jail->roots)) ||
	    !read_line(at, "seccomp", jail->seccomp, sizeof(jail->seccomp)))
		return -1;
	if (jail->seccomp[0] == '-')
		jail->seccomp[0] = '\0';
	return 0;
}

/* Reports whether the last lines of a jail allow it to the user. */
static bool is_allowed(const char *at, const struct user *user)
{
	char value[16];
	bool allowed = read_line(&at, "access", value, sizeof(value)) && strcmp(value, "all") == 0;

	while (read_line(&at, "uid", value, sizeof(value)))
		allowed = allowed || (uid_t)strtoul(value, NULL, 10) == user->uid;
	while (read_line(&at, "gid", value, sizeof(value)))
		allowed = allowed || has_group(user, (gid_t)strtoul(value, NULL, 10));
	return allowed || user->uid == 0;
}

int site_find_jail(const struct site *site, const char *name, const struct user *user, struct jail *jail,
		   struct fault *fault)
{
	const char *at = site->jails;

	memset(jail, 0, offsetof(struct jail, gpus)); /* the rest has pages that most nodes never touch */
	do
		if (!next_jail(&at, jail->name, sizeof(jail->name)))
			return unknown_jail(site, name, fault);
	while (strcmp(jail->name, name));
	if (parse_jail(&at, jail) < 0)
		return fault_set(fault, "the site file is damaged; ask your administrator");
	if (!is_allowed(at, user))
		return fault_set_request(fault,
					 "you (uid %u) may not use jail \"%s\"; ask your administrator "
					 "to add you or one of your groups to it",
					 (unsigned)user->uid, name);
	return 0;
}
