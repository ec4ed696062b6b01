// SPDX-License-Identifier: Apache-2.0

package jail

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/build"
	"github.com/gojail/gojail/gojail/check"
	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/gojail/unpack"
	"github.com/gojail/gojail/internal/oneline"
)

// buildFlags are the flags of gojail jail build.
type buildFlags struct {
	request build.Request
	bare    bool
	maxSize string
	asJSON  bool
}

func newJailBuildCommand(j *jailCommand) *cobra.Command {
	f := &buildFlags{}
	cmd := &cobra.Command{
		Use:   "build NAME --from SOURCE [-- ARGUMENTS]",
		Short: "Build a new version of a jail, not yet in use",
		Long: `Unpacks a source into a new version of the jail, with the mount targets that the
jails of gojail.toml with root = "store:NAME" need. Nothing of other versions is
touched, and no job gets it before "gojail jail switch". SOURCE is:

  oci:DIR[:TAG]             an OCI image layout
  oci-archive:FILE[:TAG]    a tar file with one, as podman save --format=oci-archive
  docker-archive:FILE[:TAG] a file of docker save
  docker://REGISTRY/NAME[:TAG|@DIGEST]
                            a registry; credentials are those of docker or podman
  dir:DIR                   a directory, without what is mounted in it
  tar:FILE                  a tar file: plain, gzip, zstd, xz or bzip2
  debootstrap:SUITE         a Debian made by mmdebstrap, which gets ARGUMENTS

Digests of the manifest and of all layers are verified. The source is unpacked in
a process that sees nothing but the new version. Device nodes, set-ID bits, file
capabilities, and extended attributes other than user.* are left out; flags keep
the first three.`,
		Example: `  gojail jail build debian --from docker://registry.example.org/hpc/debian:13
  gojail jail build debian --from oci-archive:debian.tar --as squashfs
  gojail jail build debian --from debootstrap:trixie -- --include=python3`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || cmd.ArgsLenAtDash() == 0 || len(args) > 1 && cmd.ArgsLenAtDash() != 1 {
				return fmt.Errorf(
					"gojail jail build needs one argument, the name of a jail; see: gojail jail build --help")
			}
			return nil
		},
		ValidArgsFunction: j.completeStored,
		RunE:              func(cmd *cobra.Command, args []string) error { return j.build(cmd, f, args) },
	}
	r, flags := &f.request, cmd.Flags()
	flags.StringVar(&r.Source, "from", "", "the SOURCE, see above")
	flags.StringVar(&r.Format, "as", store.FormatDir, "what a version is stored as: dir, squashfs or erofs")
	flags.StringVar(&r.Image.Platform, "platform", "", "OS/ARCHITECTURE of an image (default: this machine's)")
	flags.BoolVar(&r.Image.Insecure, "insecure", false, "use a registry without TLS")
	flags.StringVar(&r.Image.Authority, "ca", "",
		"file with the certificates of a registry's authority (default: the system's)")
	flags.StringVar(&r.Policy.Devices, "devices", unpack.DevicesDrop,
		"how device nodes are treated: drop, refuse or make")
	flags.BoolVar(&r.Policy.Setuid, "keep-setuid", false, "keep set-ID bits and file capabilities, also outside jails")
	flags.Int64Var(&r.Limits.Entries, "max-entries", 0,
		"maximum number of files in a source (default: by its size, at most 4 million)")
	flags.StringVar(&f.maxSize, "max-size", "", "maximum size of its files together (default: by its size, at most 1T)")
	flags.BoolVar(&f.bare, "no-targets", false, "create no mount targets")
	flags.BoolVar(&r.Wait, "wait", false, "wait while somebody else builds this jail")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON")
	return cmd
}

func (j *jailCommand) build(cmd *cobra.Command, f *buildFlags, args []string) error {
	r := &f.request
	if r.Source == "" {
		return fmt.Errorf("gojail jail build needs --from SOURCE; see: gojail jail build --help")
	}
	if len(args) > 1 && !strings.HasPrefix(r.Source, "debootstrap:") {
		return fmt.Errorf("arguments after -- are for mmdebstrap, and the source is %s", r.Source)
	}
	var err error
	if f.maxSize != "" {
		if r.Limits.Bytes, err = config.ParseSize(f.maxSize); err != nil {
			return fmt.Errorf("--max-size: %w", err)
		}
	}
	s, err := j.openStoreForChange(cmd)
	if err != nil {
		return err
	}
	name := args[0]
	if !f.bare {
		if r.Targets, err = j.planTargets(name); err != nil {
			return err
		}
	}
	jail, err := s.MakeJail(name)
	if err != nil {
		return err
	}
	r.Image.Debootstrap, r.By, r.Self = args[1:], findAuthor(), unpackSelf
	ctx, stop := interruptible(cmd)
	defer stop()
	line := newProgressLine(cmd.ErrOrStderr())
	r.Report = line.report
	record, err := build.Build(ctx, jail, *r)
	line.clear()
	if record == nil {
		return fmt.Errorf("jail %s is not built: %w", name, err)
	}
	if f.asJSON {
		return oneline.Both(cmdline.PrintJSON(cmd.OutOrStdout(), record), err)
	}
	printRecord(cmd.OutOrStdout(), name, record)
	printHidden(cmd.OutOrStdout(), jail, record.Version)
	return err // the version is built, but something of the build is left
}

// printHidden says which files of a version no job sees. Of an image, gojail check does.
func printHidden(w io.Writer, jail *store.Jail, version string) {
	v, err := jail.Version(version)
	if err != nil {
		return
	}
	root, err := os.OpenFile(jail.Path(v), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	defer root.Close()
	if files := check.FindHidden(int(root.Fd())); len(files) > 0 {
		fmt.Fprintf(w, "no job sees %s: each has its own directory there; move what programs need to another one\n",
			oneline.Printable(strings.Join(files, " ")))
	}
}

func printRecord(w io.Writer, name string, r *store.Record) {
	fmt.Fprintf(w, "built version %s of jail %s: %d files, %s\n", r.Version, name, r.Entries, formatSize(r.Stored))
	for _, kind := range slices.Sorted(maps.Keys(r.LeftOut)) {
		fmt.Fprintf(w, "left out: %d %s\n", r.LeftOut[kind], kind)
	}
	fmt.Fprintf(w, "to use it: gojail jail switch %s %s\n", name, r.Version)
}
