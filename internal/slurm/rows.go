// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gojail/gojail/internal/command"
)

// Odd are records and values that could not be read.
type Odd struct {
	Count int
	First string // beginning of the first one, for a log
}

func (o *Odd) add(what, text string) {
	if o.Count == 0 {
		o.First = fmt.Sprintf("%s: %.100q", what, text)
	}
	o.Count++
}

// separator separates the columns of a row: no name in Slurm has it.
const separator = "\x1f"

// Rows runs squeue or sinfo for columns such as "%i", and calls take with those of each row; an error of take counts
// the row as odd. The last column may be any text, of several lines: each row begins with a mark that nobody can have
// written into a text.
func Rows(ctx context.Context, p Program, columns []string, take func(row []string) error) (Odd, error) {
	mark := "@" + rand.Text()[:16]
	p.Args = append(slices.Clone(p.Args), "--noheader", "--format="+mark+separator+strings.Join(columns, separator))
	return read(ctx, p, func(r io.Reader) (Odd, error) { return readRows(r, mark, len(columns), take) })
}

// readRows reads rows that begin with a mark. It skips lines before the first row: they are the error if there is no
// row.
func readRows(r io.Reader, mark string, columns int, take func(row []string) error) (odd Odd, err error) {
	var row []byte
	var notices notices
	finish := func() {
		if row == nil {
			return
		}
		parts := strings.SplitN(string(row), separator, columns+1)[1:]
		if len(parts) != columns {
			odd.add(fmt.Sprintf("a row does not have %d columns", columns), string(row[len(mark):]))
		} else if err := take(parts); err != nil {
			odd.add(err.Error(), strings.Join(parts, "|"))
		}
	}
	lines := newLines(r)
	for {
		line, err := lines.next()
		switch {
		case (err == io.EOF || notices.count > noticesMost) && row == nil && notices.count > 0:
			return odd, notices.explain("a row")
		case err == io.EOF:
			finish()
			return odd, nil
		case err != nil:
			return odd, err
		case strings.HasPrefix(line, mark+separator):
			finish()
			row = []byte(line)
		case row == nil:
			notices.add(line)
		case len(row) < lineMost:
			row = append(append(row, '\n'), line...)
		}
	}
}

// notices are the lines before the first record. They are the error if there is no record.
type notices struct {
	count int
	first string
}

// noticesMost is the limit of such lines.
const noticesMost = 100

func (n *notices) add(line string) {
	if n.count++; n.first == "" {
		n.first = line
	}
}

func (n *notices) explain(record string) error {
	return fmt.Errorf("%.100q where %s should begin", n.first, record)
}

// lineMost is the limit of a line, in bytes. The rest of a longer one is skipped.
const lineMost = command.OutputMost

// lines reads lines of any length.
type lines struct{ r *bufio.Reader }

func newLines(r io.Reader) *lines { return &lines{bufio.NewReaderSize(r, 64<<10)} }

// next returns the next line without its end, or io.EOF.
func (l *lines) next() (string, error) {
	var long []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if long == nil && err == nil {
			return string(part[:len(part)-1]), nil
		}
		if len(long) < lineMost {
			long = append(long, part...)
		}
		switch {
		case err == bufio.ErrBufferFull:
		case err == io.EOF && len(long) == 0:
			return "", io.EOF
		case err != nil && err != io.EOF:
			return "", err
		default:
			return strings.TrimSuffix(string(long), "\n"), nil
		}
	}
}

// eachLine calls take with each line.
func eachLine(r io.Reader, take func(string)) error {
	lines := newLines(r)
	for {
		line, err := lines.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		take(line)
	}
}
