/* SPDX-License-Identifier: Apache-2.0
 *
 * attack runs programs that try to get out of a jail. Each prints one line,
 * "NAME ESCAPED what" or "NAME HELD why". What it can reach it opens, and leaves as it was. */
#ifndef ATTACK_H
#define ATTACK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A file that the node has and no jail. */
#define OUTSIDE "etc/gojail-outside"

/* Names of what a victim leaves lying about begin with this. */
#define VICTIM "gojail-victim-"

struct attack {
	const char *name;
	void (*run)(void);
};

/* Each ends with a row without a name. */
extern const struct attack view_attacks[], mount_attacks[], kernel_attacks[], job_attacks[], share_attacks[],
	lent_attacks[];

/* The tags of all victims, NULL at the end. */
extern const char *const victims[];

/* A text that every process of this program has at the same address. */
extern char secret[32];

/* escaped and held print the verdict and end the process. */
void escaped(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void held(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* held_errno is held with the text of errno at its end. */
void held_errno(const char *what) __attribute__((noreturn));

/* found adds to what judge prints: ESCAPED with all that was found, or HELD with why. */
void found(const char *format, ...) __attribute__((format(printf, 1, 2)));
void judge(const char *why) __attribute__((noreturn));

/* is_outside climbs from a directory as far as ".." leads and says whether the node's root is there. */
bool is_outside(int directory);

/* user_namespace makes a user root of a namespace of its own (user_namespaces(7)). */
void user_namespace(void);

/* powers gives a user that has none a user namespace of its own; then a mount namespace. */
void powers(void);

/* each_pid calls f for every number that may be a process, but for 1 and this program's own. */
void each_pid(void (*f)(pid_t pid));

/* victim_of is the tag of a victim that /proc shows as pid, or NULL. */
const char *victim_of(pid_t pid);

/* key_of is the System V key of a victim. */
key_t key_of(const char *tag);

/* Further verbs of the program; each returns its exit status. */
int be_victim(const char *tag);
int be_daemon(void);
int be_bomb(int count);
int fill(const char *directory, int megabytes);
int am_i_root(void);
int copy_self(const char *path);
int swap_names(const char *one, const char *other);

/* with_key executes a command in a session whose keyring has a key. */
int with_key(char **command);

/* without_landlock executes a command as a kernel without Landlock does. */
int without_landlock(char **command);

#endif
