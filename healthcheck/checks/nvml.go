// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// nvmlCode is an nvmlReturn_t with built-in texts: those of the library would need a call, and
// may be of another version.
type nvmlCode nvml.Return

// Codes that checks distinguish.
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
	nvmlOldVersion   = nvmlCode(nvml.ERROR_ARGUMENT_VERSION_MISMATCH)
)

// nvmlWords are the texts of the codes.
var nvmlWords = map[nvml.Return]string{
	nvml.ERROR_NO_PERMISSION:           "no permission",
	nvml.ERROR_DRIVER_NOT_LOADED:       "the driver is not loaded",
	nvml.ERROR_TIMEOUT:                 "timeout",
	nvml.ERROR_IRQ_ISSUE:               "an interrupt of a GPU is not delivered",
	nvml.ERROR_LIBRARY_NOT_FOUND:       "cannot load the library libnvidia-ml.so.1",
	nvml.ERROR_FUNCTION_NOT_FOUND:      "the library lacks a function",
	nvml.ERROR_CORRUPTED_INFOROM:       "the infoROM is corrupted",
	nvml.ERROR_GPU_IS_LOST:             "a GPU is lost",
	nvml.ERROR_RESET_REQUIRED:          "a GPU requires a reset",
	nvml.ERROR_OPERATING_SYSTEM:        "the operating system refuses the device",
	nvml.ERROR_LIB_RM_VERSION_MISMATCH: "the driver and its library have different versions",
	nvml.ERROR_GPU_NOT_FOUND:           "no GPU found",
	nvml.ERROR_UNKNOWN:                 "unknown driver error",
}

func (c nvmlCode) String() string {
	if words := nvmlWords[nvml.Return(c)]; words != "" {
		return words
	}
	return fmt.Sprintf("NVML error %d", int(c))
}

// nvmlLibrary is the driver's library, loaded at run time: nodes with GPUs have different
// versions of it, and nodes without GPUs have none. Calls can hang, and loading executes the
// library's code: the library is used only in a child, and each process loads only one library,
// since the dynamic linker binds each function to the first library that it finds.
type nvmlLibrary struct {
	nvml.Interface
	file *dl.DynamicLibrary
	has  map[string]bool // available functions, by name
}

// openNVML loads and initializes the library.
func openNVML(path string) (*nvmlLibrary, nvmlCode) {
	n := &nvmlLibrary{nvml.New(nvml.WithLibraryPath(path)), dl.New(path, dl.RTLD_LAZY|dl.RTLD_GLOBAL),
		map[string]bool{}}
	if n.file.Open() != nil {
		return nil, nvmlNoLibrary
	}
	return n, n.callFunction("nvmlInit_v2", n.Init)
}

func (n *nvmlLibrary) close() {
	n.callFunction("nvmlShutdown", n.Shutdown)
	_ = n.file.Close()
}

// callFunction makes a call of go-nvml if the library has the underlying function: otherwise
// the dynamic linker, which resolves the function only then, would end the process.
func (n *nvmlLibrary) callFunction(name string, f func() nvml.Return) nvmlCode {
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

// callGetter makes a call that returns a value.
func callGetter[T any](n *nvmlLibrary, name string, f func() (T, nvml.Return)) (v T, code nvmlCode) {
	code = n.callFunction(name, func() (r nvml.Return) { v, r = f(); return r })
	return v, code
}

// bindArgument returns a call of f with a fixed argument.
func bindArgument[A, T any](f func(A) (T, nvml.Return), argument A) func() (T, nvml.Return) {
	return func() (T, nvml.Return) { return f(argument) }
}
