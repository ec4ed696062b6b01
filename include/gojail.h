/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gojail.h: the contract between the plugin, gojail-launcher, libgojail.so, gojail-session and the commands.
 *
 * Everything that crosses from C to Go, or from one process to another, is
 * described here and nowhere else; gojail/contract/contract_test.go compares the Go side.
 *
 * docs/state.md says what is in the files that are named here.
 */
#ifndef GOJAIL_H
#define GOJAIL_H

#include <stdint.h>

#define GOJAIL_VERSION 18 /* raised with each change of what this file or docs/state.md describes */

#define GOJAIL_NAME_MAX 64   /* a jail's name, a node's name */
#define GOJAIL_PATH_MAX 1024 /* any path that is configured */
#define GOJAIL_GRES_MAX 4096 /* a list of GPUs, or NICs, in Slurm's words */
#define GOJAIL_TEXT_MAX 1024 /* one message, its NUL included */
#define GOJAIL_GPU_NODES_MAX 512
#define GOJAIL_GPU_PATH_MAX 64    /* a GPU's device node, its NUL included */
#define GOJAIL_LOGIN_NAME_MAX 128 /* a user or group of [login] in the site file */
#define GOJAIL_KEY_LEN 16         /* hex digits */
#define GOJAIL_MOUNTS_MAX 8192    /* bytes of a step's --jail-mount */
#define GOJAIL_SANDBOXES_MAX 32   /* of one job on one node */
#define GOJAIL_TREES_MAX 32       /* detached trees handed over for one sandbox */
#define GOJAIL_JOB_MOUNTS_MAX 18  /* what one sandbox mounts besides those */
#define GOJAIL_RETRY_PAUSE 10     /* seconds */
#define GOJAIL_SITE_MAX (4 << 20) /* bytes of the site file */

/*
 * The project of the quota on a job's /tmp: the job's number with bit 31 flipped, so that small projects stay the
 * administrator's. All 32 bits count, as a federation puts the cluster into the upper 6; with fewer than 32 clusters
 * no two jobs share a project. `gojail run` has the project of its pid with bit 30 flipped, the sandbox of a user's
 * sessions on a login node that of the uid with bits 30 and 29 flipped.
 */
#define GOJAIL_PROJECT_OF_JOBS 0x80000000
#define GOJAIL_PROJECT_OF_RUNS 0x40000000
#define GOJAIL_PROJECT_OF_LOGINS 0x60000000

/* Files of the installation, all in one directory. */
#define GOJAIL_PLUGIN "spank_gojail.so"
#define GOJAIL_LAUNCHER "gojail-launcher"
#define GOJAIL_LIBRARY "libgojail.so"
#define GOJAIL_SESSION "gojail-session"

/* In the state directory, one per node. */
#define GOJAIL_SITE "site"           /* what C needs of gojail.toml, written by Go */
#define GOJAIL_JAILS "jails"         /* a directory for each jail */
#define GOJAIL_JOBS "jobs"           /* a directory for each job; also in the scratch directory */
#define GOJAIL_ALLOCATED "allocated" /* a file for each job that the Prolog has seen here: what it asked for */
#define GOJAIL_ENDED "ended"         /* an empty file for each job whose end failed */
#define GOJAIL_LAUNCHES "launches"   /* a directory with a struct gojail_launches for each jail, and GOJAIL_NO_JAIL */
#define GOJAIL_SLURMD "slurmd"       /* the record of slurmd */
#define GOJAIL_NET_JOBS "net/jobs"   /* JOB.json: the job may have something of a network */

/* Likewise, flock(2): one process at a time asks NVIDIA's library. */
#define GOJAIL_NVML_LOCK "nvml.lock"

/* In the directory of a jail, or of a job, or both. */
#define GOJAIL_LOCK "lock"                   /* flock(2): one process builds at a time */
#define GOJAIL_SOCKET "socket"               /* SOCK_SEQPACKET, the zygote listens */
#define GOJAIL_ZYGOTE "zygote"               /* its record */
#define GOJAIL_TEMPLATE_SPEC "config.json"   /* OCI runtime-spec of the template */
#define GOJAIL_STORAGE_SOCKET "storage.sock" /* SOCK_SEQPACKET, the zygote listens */
#define GOJAIL_STORAGE "storage"             /* what the storage answered last; its time of change is when, see below */
#define GOJAIL_IDENTITY "identity" /* what the path of the jail's root led to when the template was assembled */
/* Which versions of the store the template may have; .SANDBOX.versions: what a sandbox was made from. */
#define GOJAIL_VERSIONS "versions"
#define GOJAIL_GPUS ".gpus"           /* which of Slurm's GPUs steps of the job got in which jail */
#define GOJAIL_GPU_NODES ".gpu-nodes" /* device nodes of these GPUs, a path on each line */
#define GOJAIL_MEMORY ".memory"       /* the most memory that the job had so far, in bytes, where a cgroup says so */
#define GOJAIL_CGROUPS ".cgroups"     /* the job's cgroups, a path on each line */
#define GOJAIL_OWNER ".uid"           /* whose job it is */
#define GOJAIL_SCRATCH ".scratch"     /* symbolic link to the job's directory in the scratch directory */
#define GOJAIL_NAMESPACES ".ns"       /* record of the holder whose namespaces all sandboxes of the job share */
#define GOJAIL_NET ".net"             /* record of the holder of the job's network */
#define GOJAIL_NET_ENV ".net.env"     /* what its tasks get in their environment of that */
#define GOJAIL_NET_COUNTERS ".net.counters" /* what the counters of its rails were when they were attached */
#define GOJAIL_SPEC_SUFFIX ".json"          /* of a sandbox's name: the spec that it was made from */
#define GOJAIL_MOUNTS_SUFFIX ".mounts"      /* likewise: its --jail-mount list */
/* Likewise: GOJAIL_STORAGE of the template that the sandbox was made from (hard link). */
#define GOJAIL_STORAGE_SUFFIX ".storage"
/* flock(2), shared: a session on a login node is in the sandbox, or about to enter it. */
#define GOJAIL_SESSIONS ".sessions"
#define GOJAIL_WATCHER ".watcher" /* flock(2): the launcher that ends the sandbox when no session is left */

/* The name, before the uid, of what has the place of a job on a login node: the sandbox of all sessions of a user. */
#define GOJAIL_LOGIN "login-"

/* In the directory GOJAIL_ENDED: a file whose time is that of the last retry of ends that failed. */
#define GOJAIL_TRIED ".tried"

/* In the directory GOJAIL_JOBS of the scratch directory: files of jobs that ended, which are to be removed. */
#define GOJAIL_TRASH ".trash"

/* Beside gojail.toml. */
#define GOJAIL_NETWORK_CONFIG "network.toml"

/* In the jail's root, if that is a directory: a new file of this name makes it another version of the jail. */
#define GOJAIL_VERSION_FILE ".gojail.version"

/* Names of processes (PR_SET_NAME, prctl(2)). */
#define GOJAIL_ZYGOTE_NAME "gojail-zygote"
#define GOJAIL_PROBER_NAME "gojail-prober"
#define GOJAIL_HOLDER_NAME "gojail-holder"

/*
 * Sources of the empty tmpfs below mounts of a stage. What is mounted on one, or further up, is of the jail's or the
 * job's; or of the node's, as are the mounts without any. The first may be followed by ":LINK=TARGET" for each symbolic
 * link in the stage's / that leads there, and by ":" if it lies on another one, which names further links.
 */
#define GOJAIL_STAGE_DATA "gojail-data"
#define GOJAIL_STAGE_NODE "gojail-node"

/* Slurm's configuration as slurmd fetched it, in a jail; and the link to it in the spool directory there. */
#define GOJAIL_SLURM_CACHE "/run/gojail/slurm"
#define GOJAIL_SLURM_CACHE_LINK "conf-cache"

#define GOJAIL_DEFAULT_CONFIG "/etc/gojail/gojail.toml"
/* What gojail-session goes by: lines config=FILE, state=DIR, node=NAME, as plugstack.conf has them. */
#define GOJAIL_SESSION_CONFIG "/etc/gojail/session.conf"
#define GOJAIL_DEFAULT_STATE "/run/gojail"
#define GOJAIL_DEFAULT_DEADLINE_MS 10000 /* without a site file */
#define GOJAIL_END_MS 3000               /* deadline of the end of a job without a network */

/*
 * Descriptors of a holder, which the steps of its job take by pidfd_getfd(2); a zygote has the first only.
 * Finding the namespaces in /proc would cost a step five times as much. Its own namespaces a step enters by its pidfd,
 * unless the tasks are in a Landlock domain by then.
 */
#define GOJAIL_STAGE_FD 3 /* mount namespace of the stage: the jail's, the job's own */
#define GOJAIL_USER_FD 4  /* user namespace, if it has one */
#define GOJAIL_ROOT_FD 5  /* root of the jail, O_PATH */
#define GOJAIL_MNT_FD 6   /* from here on the holder's own namespaces */
#define GOJAIL_PID_FD 7
#define GOJAIL_IPC_FD 8
#define GOJAIL_UTS_FD 9
#define GOJAIL_RECORD_FD 10 /* its record, O_PATH: the process that has the record open here is the holder */

/*
 * gojail-launcher VERB [name=value]... [-- COMMAND [ARGUMENT]...]
 *
 *   site      compile gojail.toml into the site file
 *   template  assemble the jail and its stage, then stay as its zygote
 *   sandbox   find or build a job's sandbox; the only way for --jail-mount and --jail-net
 *   session   the same, for a session of the job's user before the first step, with the job's GPUs, if Slurm says that
 * it has this node login     find or build the sandbox of a user's sessions on a login node, then stay to end it when
 * it is no longer used storage   probe the storage of a sandbox whose template is gone enter     run a command in a
 * sandbox that is there, as its owner, with what its tasks give up given up for good earlier   tear down what an
 * earlier job of the same number left: of another user than uid or, if begun is given, of before that time epilog tear
 * a job's sandboxes down; its files are in the trash then ended     write the line of a job's end into the journal,
 * with the use of its GPUs, and into its record in slurmdbd clean     remove what is in the trash, and try again what
 * failed at the ends of jobs boot      start showing sandboxes munge's socket as it is now, and sweep what jobs that
 * are gone left behind (slurmd start) logout    end the sandbox of a user's sessions on a login node, unless it is used
 *
 * names: state, config, node, jail, key, job, uid, gid, groups (comma separated), mounts, script (the batch script's
 * directory), deadline (ms), net (the label of --jail-net), gpus and nics (what Slurm gave the job, as it writes them),
 * root (self or range of --jail-root), holder (the process whose network namespace it is), range and data
 * (descriptors, see below), parent (the process with which the verb sandbox ends), scratch (the scratch directory whose
 * trash is meant besides that of the configuration), sandbox (the name of its record), user and home (of the uid), tty
 * (which of the descriptors 0 to 2 becomes the command's terminal), TERM, LANG and TZ (of the command's environment),
 * sockets (hidden: no socket that is mounted in the jail, such as munge's, is the command's to use; none: it can open
 * no Unix socket, either), ids (the number of ids, from uid and gid on, of a user namespace in which the command is
 * root, unless the sandbox has one; or of the sandbox's, with root=range), any (not empty: root asks, who may use any
 * jail), libdir (of the launcher itself, which runs from a mount of its own file then), summary, error, begun, ended
 * and field (of a job's end: the fields of its line, why not all of it is gone, its time in Unix seconds, which begun
 * is of the verb earlier as well, and which field of its record gets them; gpus has the numbers of its device nodes
 * then), source (the path of the jail's root on the node), allocated (the time, in nanoseconds, of the job's file in
 * GOJAIL_ALLOCATED for which a session asks), replace (PID:START of the zygote that template is to replace, although it
 * has the key), unused (ms after which the zygote ends if no job has used it; default: an hour).
 *
 * Descriptor 3 is a pipe to the caller, to which the launcher writes lines. The last is "ok" or "error TEXT"; end of
 * file without either means that the launcher died. Before it there may be:
 *
 * "pid N START", of template, ended, clean and boot: the process that goes on detached from the caller, and its start
 * time in clock ticks since boot (field 22 of proc_pid_stat(5)). The watcher of login goes on without this line.
 *
 * "pid N", of enter: the command, which is a child of the caller.
 *
 * "silent": storage did not answer in time, which is the reason of the error.
 *
 * "request": the error refuses what the user asked for, and the node has no fault.
 *
 * "note FIELDS", of epilog: what the job's rails carried.
 *
 * enter runs its command, or a shell where none is given, with the descriptors 0 to 2 and in the cgroup and with the
 * umask of the caller. The command is the caller's child, to be waited for: the launcher ends when the command is
 * executed ("ok"), or cannot be ("error", after which the child ends). Without an answer the child is to be killed.
 */
#define GOJAIL_REPLY_FD 3
#define GOJAIL_NICS_UNKNOWN "?" /* nics= of the verb session: Slurm tells them to steps alone */

/*
 * How many steps entered a jail on this node since it booted, and how long the plugin took for them: the content of a
 * file that slurmstepd maps. Each number is added to atomically, by task 0 of a step.
 */
struct gojail_launches {
	uint64_t version; /* GOJAIL_VERSION; a file of another version is replaced */
	uint64_t entered;
	uint64_t failed[6]; /* by GOJAIL_REASON_... */
	uint64_t took[10];  /* steps that entered, by GOJAIL_TOOK_US; the last has no bound */
	uint64_t took_us;   /* of all of them */
};

#define GOJAIL_NO_JAIL ".none" /* name of the file of steps that failed before their jail was known */

/* Upper bounds in microseconds. */
#define GOJAIL_TOOK_US 200, 500, 1000, 2500, 10000, 50000, 250000, 1000000, 5000000

#define GOJAIL_REASON_CONFIGURATION 0
#define GOJAIL_REASON_REQUEST 1
#define GOJAIL_REASON_STORAGE 2
#define GOJAIL_REASON_SANDBOX 3
#define GOJAIL_REASON_STEP 4
#define GOJAIL_REASON_TASK 5

/* A mount to be attached in a sandbox: a detached tree and where it goes. */
struct gojail_tree {
	int32_t fd;
	uint32_t flags;
	char destination[GOJAIL_PATH_MAX]; /* absolute, resolved inside the jail */
};

/* Flags of a tree. The only entry of its parent directory, on which the mount GOJAIL_MOUNT_SCRIPT is made: */
#define GOJAIL_TREE_ALONE 1u
/* A mount of the user's, for the stage as well. Its destination was resolved and judged: a symlink in it now is an
 * attack. */
#define GOJAIL_TREE_EXACT 2u
/* Not a tree, but the job's network namespace, which the holder enters. */
#define GOJAIL_TREE_NET 4u
/* Not a tree, but the job's namespace of the kind that destination names: pid, ipc, uts. */
#define GOJAIL_TREE_NS 8u
/*
 * Not a tree, but a user namespace, which the holder keeps for the tasks instead of making one. destination is
 * "UID GID", the ids of its root on the node, which own the sandbox's /run.
 */
#define GOJAIL_TREE_USER 16u
/* The jail's root, which replaces the template's; the mounts below the template's root move to it. */
#define GOJAIL_TREE_ROOT 32u
/* What holds the job's changes to the root, for the mount that is GOJAIL_MOUNT_ROOT. */
#define GOJAIL_TREE_UPPER 64u

/* A mount of the site file's line "mount" (docs/state.md) that the holder makes. */
struct gojail_mount {
	uint32_t how;        /* GOJAIL_MOUNT_... */
	uint32_t attributes; /* MOUNT_ATTR_... (mount_setattr(2)) */
	char type[16];
	char options[96];     /* as mount(8) has them; may be "" */
	char destination[32]; /* absolute, in the jail; "" with GOJAIL_MOUNT_SCRIPT: the parent of the tree that is
				 GOJAIL_TREE_ALONE */
};

#define GOJAIL_MOUNT_OVER 1u    /* on the template's /proc, /sys, /dev or /run */
#define GOJAIL_MOUNT_IN 2u      /* on a directory in one of those */
#define GOJAIL_MOUNT_ACCOUNT 4u /* bind mount of a file of GOJAIL_ACCOUNTS */
#define GOJAIL_MOUNT_JOB 8u     /* not with GOJAIL_REQUEST_SHARED */
#define GOJAIL_MOUNT_SCRIPT 16u /* only if a tree is GOJAIL_TREE_ALONE */
#define GOJAIL_MOUNT_MKDIR 32u  /* create the directory first */
#define GOJAIL_MOUNT_NET 64u    /* only in a sandbox with a network of the job's own */
#define GOJAIL_MOUNT_UPPER 128u /* not attached: the upper layer of the next, unless a tree is GOJAIL_TREE_UPPER */
#define GOJAIL_MOUNT_ROOT 256u  /* an overlay of the root, unless a tree is GOJAIL_TREE_ROOT */

/*
 * A request on the zygote's socket: this header, ntrees trees, and their descriptors as SCM_RIGHTS. The
 * holder is a child that the zygote forks, or the spare, which has prepared a sandbox beforehand
 * (spank/launcher/holder.h); the caller sees no difference. The holder replies twice with a gojail_reply: at once,
 * so that the caller knows the process, then with the result. If it entered a PID namespace, the second reply
 * comes from another process. Pids are those of the node. The holder ends unless the caller, which has written
 * the record, then sends one byte with a descriptor of the record.
 */
struct gojail_request {
	uint32_t version;
	uint32_t flags;
	uint32_t uid, gid; /* with GOJAIL_REQUEST_ROOT: whose user namespace it is */
	uint32_t ntrees;
	uint32_t nmounts;
	struct gojail_mount mounts[GOJAIL_JOB_MOUNTS_MAX]; /* in the order of the site file; zeros after the last */
};

/* Directory in /run of a template with the node's passwd, group, shadow and gshadow, which sandboxes mount on those of
 * /etc. */
#define GOJAIL_ACCOUNTS "gojail/node"

/* Directory in /run of a template with a symbolic link to each library that Slurm's commands need and the jail lacks;
 * the link's name is the path with ':' for '/'. Sandboxes of --jail-root=range do not get them, as their root may
 * install its own. */
#define GOJAIL_OPTIONAL "gojail/optional"

/* The mounts GOJAIL_MOUNT_JOB are another sandbox's of the job, and among the trees. */
#define GOJAIL_REQUEST_SHARED 1u
#define GOJAIL_REQUEST_NET 4u    /* create a network namespace */
#define GOJAIL_REQUEST_PID 8u    /* create a PID namespace, or enter the job's */
#define GOJAIL_REQUEST_IPC 16u   /* the same with IPC */
#define GOJAIL_REQUEST_UTS 32u   /* the same with UTS */
#define GOJAIL_REQUEST_ROOT 128u /* create a user namespace, in which uid is 0 and no other id is mapped */

struct gojail_reply {
	uint32_t version;
	int32_t pid;
	uint64_t start; /* start time, clock ticks since boot */
	int32_t failed; /* 0, or text is the error */
	char text[GOJAIL_TEXT_MAX];
};

/*
 * What a zygote is asked of its storage, on a socket of its own, and its one answer. Nobody may touch what lies on the
 * storage of a jail, which may never return from that, unless the storage has answered within GOJAIL_STORAGE_MS. The
 * time of change of the file GOJAIL_STORAGE is when it last did, on the monotonic clock: whoever finds that young
 * enough need not ask.
 */
#define GOJAIL_STORAGE_MS 1000

/* The file's mode where all of the template is on local storage: nobody need ask then, but for what the path of the
 * root leads to by now. */
#define GOJAIL_STORAGE_LOCAL 0400

#define GOJAIL_STORAGE_ANEW 1u /* the storage is asked after the zygote was */

struct gojail_storage_request {
	uint32_t version;
	uint32_t flags;
	uint32_t patience_ms; /* GOJAIL_STORAGE_SILENT is the answer then */
};

#define GOJAIL_STORAGE_OK 0
#define GOJAIL_STORAGE_STALE 1    /* a mount of the template is gone for good: another template is needed */
#define GOJAIL_STORAGE_SWITCHED 2 /* the path of the root leads to another one now: likewise */
#define GOJAIL_STORAGE_FAILED 3   /* error tells how */
#define GOJAIL_STORAGE_SILENT 4

struct gojail_storage_reply {
	uint32_t version;
	int32_t verdict;            /* GOJAIL_STORAGE_... */
	int32_t error;              /* an errno, or 0 */
	char text[GOJAIL_TEXT_MAX]; /* one line for people, unless the verdict is GOJAIL_STORAGE_OK */
};

/*
 * The one call into libgojail.so, on the main thread of a fresh process:
 *
 *     int gojail_call(struct gojail_call *call);   // 0 or -1 with call->text
 *
 * argv is the launcher's own, VERB first. Verbs here: site, mounts, epilog, clean
 * boot and logout as above; net, which attaches the job's rails to the namespace of holder
 * and writes .net.env; ids and range, for --jail-root=range; and the three parts of template:
 *   root          mount the jail's root on "/" of the calling process's mount namespace,
 *                 which is already private to it, for the views to find;
 *   stage, jail   assemble that view in the calling process's mount namespace,
 *                 which is already private to it, and pivot into it.
 * mounts fills trees; the caller owns the descriptors.
 *   ids     puts "UID GID COUNT" into text: the user's range of /etc/subuid and /etc/subgid.
 *   range   fills trees: the jail's root, and data that is the user's, with their ids mapped
 *           (MOUNT_ATTR_IDMAP) by the user namespaces range and data. So mounts does with data.
 */
struct gojail_call {
	uint32_t version; /* GOJAIL_VERSION of the caller; another one is refused */
	int32_t argc;
	char **argv;
	uint32_t ntrees;
	struct gojail_tree trees[GOJAIL_TREES_MAX];
	int32_t request; /* not 0: text refuses what the user asked for, and the node has no fault */
	char text[GOJAIL_TEXT_MAX];
};

#define GOJAIL_CALL_SYMBOL "gojail_call"

#endif
