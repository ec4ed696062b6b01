// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// typesMost is the limit of the GPU types of a node.
const typesMost = 32

// readGPUs returns the GPUs of a node from its GRES and from its allocated GRES: "gpu:h100:4(S:0-1),nic:2" and
// "gpu:h100:1(IDX:0),nic:0".
func readGPUs(gres, used string) ([]GPUs, error) {
	var list []GPUs
	find := func(kind string) *GPUs {
		for i := range list {
			if list[i].Type == kind {
				return &list[i]
			}
		}
		if len(list) == typesMost {
			return nil
		}
		list = append(list, GPUs{Type: kind})
		return &list[len(list)-1]
	}
	for i, text := range []string{gres, used} {
		for _, part := range ReadGRES(text) {
			if part.Name != "gpu" {
				continue
			}
			if part.Count < 0 || part.Count > 1<<20 {
				return nil, fmt.Errorf("%.100q has no count of GPUs", text)
			}
			switch g := find(toLabel(part.Type)); {
			case g == nil:
			case i == 0:
				g.Total += part.Count
			default:
				g.Allocated += part.Count
			}
		}
	}
	return list, nil
}

// noType is the text that Slurm prints for the type of GPUs without a type whose topology it knows:
// "gpu:(null):8(IDX:0-7)" (_node_gres_used prints a NULL).
const noType = ":(null)"

// GRES is one part of a list of generic resources: "gpu:h100:4(S:0-1)".
type GRES struct {
	Name, Type string
	Count      int  // 1 if the text has none; -1 if it is no number, such as "4G" of what has no device
	NoConsume  bool // Slurm allocates it without counting
}

// ReadGRES returns the parts of a list of GRES as slurm.conf(5) and Slurm's commands write it. Parentheses count for
// nothing.
func ReadGRES(text string) (list []GRES) {
	for _, part := range splitGRES(text) {
		words := strings.Split(part, ":")
		g := GRES{Name: words[0], Count: 1}
		if g.NoConsume = slices.Contains(words, "no_consume"); g.NoConsume {
			words = slices.DeleteFunc(words, func(word string) bool { return word == "no_consume" })
		}
		last := words[len(words)-1]
		mayCount := strings.Trim(last[:min(1, len(last))], "-0123456789") == "" && !strings.Contains(last, ".")
		if len(words) > 2 || len(words) == 2 && mayCount {
			words = words[:len(words)-1]
			if count, err := strconv.Atoi(last); err == nil && count >= 0 {
				g.Count = count
			} else {
				g.Count = -1
			}
		}
		g.Type = strings.Join(words[1:], ":")
		list = append(list, g)
	}
	return list
}

// splitGRES splits a list of GRES at the commas outside of parentheses, and returns its parts without their
// parentheses: "gpu:h100:1".
func splitGRES(text string) (list []string) {
	text = strings.ReplaceAll(text, noType, "")
	deep, begin := 0, 0
	add := func(end int) {
		if part, _, _ := strings.Cut(text[begin:end], "("); part != "" {
			list = append(list, part)
		}
		begin = end + 1
	}
	for i := range len(text) {
		switch text[i] {
		case '(':
			deep++
		case ')':
			deep--
		case ',':
			if deep <= 0 {
				add(i)
			}
		}
	}
	add(len(text))
	return list
}
