// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mayInclude is the order of #include lines: for each folder of C sources, those whose headers it may include
// beside include/ and its own.
var mayInclude = map[string][]string{
	"include":        {},
	"spank/common":   {},
	"spank/plugin":   {"spank/common", "spank/release"},
	"spank/release":  {},
	"spank/launcher": {"spank/common"},
	"spank/prolog":   {"spank/common"},
	"spank/session":  {"spank/common"},
	"spank/submit":   {"spank/release"},
}

var includeLine = regexp.MustCompile(`(?m)^#\s*include\s+"([^"]+)"`)

// includes returns the folder, below the repository, of each header of ours that a C file includes.
func includes(text string) (folders []string) {
	for _, match := range includeLine.FindAllStringSubmatch(text, -1) {
		switch dir := filepath.Dir(match[1]); dir {
		case ".":
			folders = append(folders, "include")
		default:
			folders = append(folders, "spank/"+dir)
		}
	}
	return folders
}

func TestIncludes(t *testing.T) {
	files, err := filepath.Glob("../../spank/*/*.[ch]")
	require.NoError(t, err)
	headers, err := filepath.Glob("../../include/*.h")
	require.NoError(t, err)
	files = append(files, headers...)
	require.Greater(t, len(files), 40)
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		dir := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../../")
		may, known := mayInclude[dir]
		assert.True(t, known, "%s is in no folder of the table", path)
		for _, to := range includes(string(text)) {
			assert.True(t, to == dir || to == "include" || slices.Contains(may, to), "%s must not include a header of %s", path, to)
		}
	}
	stray, err := filepath.Glob("../../spank/*.[ch]")
	require.NoError(t, err)
	assert.Empty(t, stray, "C sources belong in a folder below spank/")
}

func TestIncludesAreRead(t *testing.T) {
	assert.Equal(t, []string{"spank/common", "include"}, includes("#include <errno.h>\n#include \"common/fd.h\"\n# include \"gojail.h\"\n"))
}
