// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"path/filepath"
	"strings"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
)

// planOptionalLinks returns links that name the libraries that a step with --jail-root=range does not
// get, so that a package can install them: a mounted file cannot be replaced.
func planOptionalLinks(facts *node.HostFacts) []Link {
	var links []Link
	for _, path := range facts.Optional {
		links = append(links, Link{filepath.Join(contract.OptionalDir, strings.ReplaceAll(path[1:], "/", ":")), path})
	}
	return links
}
