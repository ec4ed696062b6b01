// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"fmt"
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
		for _, part := range SplitGRES(text) {
			if part != "gpu" && !strings.HasPrefix(part, "gpu:") {
				continue
			}
			kind, count, err := readGPU(part)
			if err != nil {
				return nil, err
			}
			g := find(kind)
			switch {
			case count < 0 || g == nil:
			case i == 0:
				g.Total += count
			default:
				g.Allocated += count
			}
		}
	}
	return list, nil
}

// noType is the text that Slurm prints for the type of GPUs without a type whose topology it knows:
// "gpu:(null):8(IDX:0-7)" (_node_gres_used prints a NULL).
const noType = ":(null)"

// SplitGRES splits a list of GRES at the commas outside of parentheses, and returns its parts without their
// parentheses: "gpu:h100:1".
func SplitGRES(text string) (list []string) {
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

// readGPU returns the type and the count of "gpu", "gpu:4", "gpu:h100" or "gpu:h100:4".
func readGPU(part string) (kind string, count int, err error) {
	kind = strings.TrimPrefix(strings.TrimPrefix(part, "gpu"), ":")
	number := kind
	if i := strings.LastIndexByte(kind, ':'); i >= 0 {
		kind, number = kind[:i], kind[i+1:]
	} else if part != "gpu:" && (kind == "" || strings.Trim(kind[:1], "-0123456789") != "") {
		return toLabel(kind), 1, nil
	} else {
		kind = ""
	}
	count, err = strconv.Atoi(number)
	if err != nil || count < 0 || count > 1<<20 {
		return "", 0, fmt.Errorf("%.100q has no count of GPUs", part)
	}
	return toLabel(strings.TrimSuffix(kind, ":no_consume")), count, nil
}
