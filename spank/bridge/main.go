// SPDX-License-Identifier: Apache-2.0

// Command bridge is libgojail.so: it exports the one function through which gojail-launcher calls the Go
// library. include/gojail.h defines the contract.
//
//	go build -buildmode=c-shared -o build/lib/gojail/libgojail.so ./spank/bridge
package main

/*
#cgo CFLAGS: -I${SRCDIR}/../../include
#include "gojail.h"
*/
import "C"

import (
	"fmt"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/mount"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/refusal"
)

func init() {
	// A call takes milliseconds. Only a sweep could reach the limit.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(64 << 20)
}

func main() {}

//export gojail_call
func gojail_call(call *C.struct_gojail_call) (result C.int) {
	defer func() {
		if p := recover(); p != nil {
			result = storeError(call, fmt.Errorf("internal error in libgojail.so: %v", p))
		}
	}()
	call.ntrees = 0
	if call.version != C.GOJAIL_VERSION {
		return storeError(call,
			fmt.Errorf(
				"libgojail.so has version %d of the contract, but the launcher has %d; reinstall gojail on this node",
				C.GOJAIL_VERSION, call.version))
	}
	request, err := parseRequest(readWords(call))
	if err != nil {
		return storeError(call, err)
	}
	trees, err := request.runVerb()
	if err == nil {
		copyText(call.text[:], request.answer)
		err = passTrees(call, trees)
	}
	if err != nil {
		return storeError(call, err)
	}
	return 0
}

func readWords(call *C.struct_gojail_call) []string {
	if call.argc <= 0 || call.argv == nil {
		return nil
	}
	var list []string
	for _, p := range unsafe.Slice(call.argv, int(call.argc)) {
		list = append(list, C.GoString(p))
	}
	return list
}

// passTrees passes the trees to the caller, which then owns their descriptors.
func passTrees(call *C.struct_gojail_call, trees []mount.Tree) (err error) {
	defer func() {
		if err != nil {
			for _, t := range trees {
				unix.Close(t.FD)
			}
		}
	}()
	if len(trees) > len(call.trees) {
		return refusal.Errorf("--jail-mount: too many mounts: %d; at most %d", len(trees), len(call.trees))
	}
	for i, t := range trees {
		to := &call.trees[i]
		if len(t.Destination) >= len(to.destination) {
			return refusal.Errorf("--jail-mount: %.100s... is longer than %d bytes", t.Destination,
				len(to.destination)-1)
		}
		to.fd, to.flags = C.int32_t(t.FD), 0
		if t.Root {
			to.flags = C.GOJAIL_TREE_ROOT
		}
		copyText(to.destination[:], t.Destination)
	}
	call.ntrees = C.uint32_t(len(trees))
	return nil
}

// storeError stores the message in the call, as one line, and returns -1.
func storeError(call *C.struct_gojail_call, err error) C.int {
	copyText(call.text[:], oneline.Safe(err.Error()))
	if refusal.Is(err) {
		call.request = 1
	}
	return -1
}

// copyText copies text into a C string, truncated to its size.
func copyText(to []C.char, text string) {
	n := min(len(text), len(to)-1)
	for i := range n {
		to[i] = C.char(text[i])
	}
	to[n] = 0
}
