// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// command is what --help says about a command.
type command struct {
	name     []string // gojail vf apply
	short    string   // its line in the list of commands
	long     string
	usage    []string
	examples []string
	flags    []option
	global   []option // of this command and of those below it
	below    []*command
}

// option is a flag: "-u, --user string", and what it does.
type option struct{ form, text string }

var (
	sectionTitle = regexp.MustCompile(`(?m)^(Usage|Examples|Available Commands|Flags|Global Flags):\n`)
	listed       = regexp.MustCompile(`^  ([a-z][a-z-]*) {2,}(\S.*)$`)
	flagLine     = regexp.MustCompile(`^ {2,6}((?:-\w, )?--[a-z-]+(?: \w+)?) {2,}(\S.*)$`)
)

// readHelp asks a program about a command and all below it. The commands that cobra adds are listed, and not
// asked.
func readHelp(program, short string, name ...string) (*command, error) {
	out, err := exec.Command(program, append(slices.Clone(name[1:]), "--help")...).Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s --help: %w", program, strings.Join(name[1:], " "), err)
	}
	c := &command{name: name, short: short}
	if err := c.parse(string(out)); err != nil {
		return nil, fmt.Errorf("%s --help: %w", strings.Join(name, " "), err)
	}
	for i, sub := range c.below {
		if sub.name[0] == "completion" || sub.name[0] == "help" {
			sub.name = append(slices.Clone(name), sub.name...)
			continue
		}
		if c.below[i], err = readHelp(program, sub.short, append(slices.Clone(name), sub.name[0])...); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// parse takes the output of --help apart.
func (c *command) parse(help string) error {
	titles := sectionTitle.FindAllStringSubmatchIndex(help, -1)
	if titles == nil || strings.TrimSpace(help[:titles[0][0]]) == "" {
		return fmt.Errorf("it has no text and usage")
	}
	c.long = help[:titles[0][0]]
	for i, at := range titles {
		end := len(help)
		if i+1 < len(titles) {
			end = titles[i+1][0]
		}
		body, _, _ := strings.Cut(help[at[1]:end], "\n\nUse \"")
		if err := c.parseSection(help[at[2]:at[3]], strings.Split(strings.TrimRight(body, "\n"), "\n")); err != nil {
			return err
		}
	}
	return nil
}

func (c *command) parseSection(title string, rows []string) error {
	for _, row := range rows {
		switch title {
		case "Usage":
			c.usage = append(c.usage, strings.TrimSpace(row))
		case "Examples":
			c.examples = append(c.examples, strings.TrimPrefix(row, "  "))
		case "Available Commands":
			m := listed.FindStringSubmatch(row)
			if m == nil {
				return fmt.Errorf("%q is not a command", row)
			}
			c.below = append(c.below, &command{name: m[1:2], short: m[2]})
		default:
			m := flagLine.FindStringSubmatch(row)
			if m == nil {
				return fmt.Errorf("%q is not a flag", row)
			}
			if title == "Flags" {
				c.flags = append(c.flags, option{m[1], m[2]})
			} else {
				c.global = append(c.global, option{m[1], m[2]})
			}
		}
	}
	return nil
}
