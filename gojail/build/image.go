// SPDX-License-Identifier: Apache-2.0

package build

import (
	"errors"
	"os"
	"path/filepath"
)

// checkImage fails if a tree is what an archive of an image has in it: with tar:FILE in place of oci-archive:FILE, say, jobs would find
// blobs in place of programs.
func checkImage(tree string) error {
	has := func(name string) bool {
		_, err := os.Lstat(filepath.Join(tree, name))
		return err == nil
	}
	switch {
	case has("usr"), has("bin"):
	case has("oci-layout") && has("index.json"):
		return errors.New("this is an image and not a tree of files; write oci-archive:FILE for a tar file, oci:DIR for a directory")
	case has("manifest.json"):
		return errors.New("this is an archive of docker save and not a tree of files; write docker-archive:FILE")
	}
	return nil
}
