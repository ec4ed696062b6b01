// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// nvmlCode is an nvmlReturn_t with words of our own: the library's would have to be
// asked for, and may be those of another version.
type nvmlCode nvml.Return

// The codes that checks tell apart.
const (
	nvmlOK           = nvmlCode(nvml.SUCCESS)
	nvmlBadArgument  = nvmlCode(nvml.ERROR_INVALID_ARGUMENT)
	nvmlNotSupported = nvmlCode(nvml.ERROR_NOT_SUPPORTED)
	nvmlNoDriver     = nvmlCode(nvml.ERROR_DRIVER_NOT_LOADED)
	nvmlTimeout      = nvmlCode(nvml.ERROR_TIMEOUT)
	nvmlNoLibrary    = nvmlCode(nvml.ERROR_LIBRARY_NOT_FOUND)
	nvmlNoFunction   = nvmlCode(nvml.ERROR_FUNCTION_NOT_FOUND)
	nvmlInforom      = nvmlCode(nvml.ERROR_CORRUPTED_INFOROM)
	nvmlLost         = nvmlCode(nvml.ERROR_GPU_IS_LOST)
	nvmlReset        = nvmlCode(nvml.ERROR_RESET_REQUIRED)
	nvmlNoGPU        = nvmlCode(nvml.ERROR_GPU_NOT_FOUND)
)

var nvmlWords = map[nvml.Return]string{
	nvml.ERROR_NO_PERMISSION:           "no permission",
	nvml.ERROR_DRIVER_NOT_LOADED:       "the driver is not loaded",
	nvml.ERROR_TIMEOUT:                 "timeout",
	nvml.ERROR_IRQ_ISSUE:               "an interrupt of a GPU is not delivered",
	nvml.ERROR_LIBRARY_NOT_FOUND:       "the library libnvidia-ml.so.1 cannot be loaded",
	nvml.ERROR_FUNCTION_NOT_FOUND:      "the library lacks a call",
	nvml.ERROR_CORRUPTED_INFOROM:       "the infoROM is corrupted",
	nvml.ERROR_GPU_IS_LOST:             "a GPU is lost",
	nvml.ERROR_RESET_REQUIRED:          "a GPU wants a reset",
	nvml.ERROR_OPERATING_SYSTEM:        "the operating system refuses the device",
	nvml.ERROR_LIB_RM_VERSION_MISMATCH: "the driver and its library are of different versions",
	nvml.ERROR_GPU_NOT_FOUND:           "no GPU is found",
	nvml.ERROR_UNKNOWN:                 "unknown error of the driver",
}

func (c nvmlCode) String() string {
	if words := nvmlWords[nvml.Return(c)]; words != "" {
		return words
	}
	return fmt.Sprintf("NVML error %d", int(c))
}

// nvmlLibrary is the driver's library, loaded when the program runs: most nodes with
// GPUs have another version of it, and those without have none. Calls can hang, and
// loading runs its code: only in a child, and one library for each, since the first
// that a call finds is the one that it goes to from then on.
type nvmlLibrary struct {
	nvml.Interface
	file *dl.DynamicLibrary
	has  map[string]bool // functions, by name
}

// openNVML loads and initializes the library.
func openNVML(path string) (*nvmlLibrary, nvmlCode) {
	n := &nvmlLibrary{nvml.New(nvml.WithLibraryPath(path)), dl.New(path, dl.RTLD_LAZY|dl.RTLD_GLOBAL), map[string]bool{}}
	if n.file.Open() != nil {
		return nil, nvmlNoLibrary
	}
	return n, n.call("nvmlInit_v2", n.Init)
}

func (n *nvmlLibrary) close() {
	n.call("nvmlShutdown", n.Shutdown)
	_ = n.file.Close()
}

// call makes a call of go-nvml's, if the library has the function that it is for:
// else the dynamic linker, which looks for it only then, would end the process.
func (n *nvmlLibrary) call(name string, f func() nvml.Return) nvmlCode {
	has, known := n.has[name]
	if !known {
		has = n.file.Lookup(name) == nil
		n.has[name] = has
	}
	if !has {
		return nvmlNoFunction
	}
	return nvmlCode(f())
}

// get is a call that has a result.
func get[T any](n *nvmlLibrary, name string, f func() (T, nvml.Return)) (v T, code nvmlCode) {
	code = n.call(name, func() (r nvml.Return) { v, r = f(); return r })
	return v, code
}

// of is a call of f with an argument.
func of[A, T any](f func(A) (T, nvml.Return), argument A) func() (T, nvml.Return) {
	return func() (T, nvml.Return) { return f(argument) }
}
