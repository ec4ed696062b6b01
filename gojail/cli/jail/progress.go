// SPDX-License-Identifier: Apache-2.0

package jail

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/gojail/gojail/gojail/build"
	"github.com/gojail/gojail/internal/oneline"
)

// progressLine prints the progress of a build, if its output is a terminal.
type progressLine struct {
	out   io.Writer
	width int
	last  time.Time
	stage string
}

func newProgressLine(out io.Writer) *progressLine {
	if file, ok := out.(*os.File); !ok || !term.IsTerminal(int(file.Fd())) {
		out = nil
	}
	return &progressLine{out: out}
}

// progressPause is the minimum time between two lines of the same stage.
const progressPause = 200 * time.Millisecond

func (l *progressLine) report(p build.Progress) {
	if l.out == nil || p.Stage == l.stage && time.Since(l.last) < progressPause {
		return
	}
	l.last, l.stage = time.Now(), p.Stage
	text := oneline.Printable(p.Stage)
	if p.Layer > 0 {
		text += fmt.Sprintf(", layer %d of %d, %s", p.Layer, p.Layers, formatSize(p.Bytes))
		if p.Total > 0 {
			text += " of " + formatSize(p.Total)
		}
	}
	fmt.Fprintf(l.out, "\r%-*s", l.width, text)
	l.width = len(text)
}

func (l *progressLine) clear() {
	if l.out != nil {
		fmt.Fprintf(l.out, "\r%*s\r", l.width, "")
	}
}

// formatSize returns a number of bytes in the largest unit in which it is at least 1.
func formatSize(n int64) string {
	units, value := "BKMGTP", float64(n)
	i := 0
	for value >= 1024 && i < len(units)-1 {
		value /= 1024
		i++
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %ciB", value, units[i])
}
