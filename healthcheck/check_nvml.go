// SPDX-License-Identifier: Apache-2.0

package healthcheck

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

// The layouts and signatures below are those of NVIDIA's nvml.h, which only ever
// adds calls with a new suffix.
struct pci { char legacy[16]; unsigned int domain, bus, device, id, subsystem; char address[32]; };
struct fabric { unsigned char cluster[16]; int status; unsigned int clique; unsigned char state; };
struct field { unsigned int id, scope; long long stamp, latency; int type, code; union { double d; unsigned int ui; unsigned long long ull; } value; };
struct process { unsigned int pid; unsigned long long memory; unsigned int instance, compute; };

struct sram { unsigned int version; unsigned long long counts[11]; unsigned int exceeded; };

typedef int (*none_fn)(void);
typedef int (*two_fn)(void *, unsigned int *, unsigned int *);
typedef int (*pair_fn)(void *, unsigned int *);
typedef int (*sram_fn)(void *, struct sram *);
typedef int (*text_fn)(void *, char *, unsigned int);
typedef int (*system_text_fn)(char *, unsigned int);
typedef int (*count_fn)(unsigned int *);
typedef int (*handle_fn)(unsigned int, void **);
typedef int (*one_fn)(void *, unsigned int *);
typedef int (*indexed_fn)(void *, unsigned int, unsigned int *);
typedef int (*wide_fn)(void *, unsigned long long *);
typedef int (*errors_fn)(void *, int, int, int, unsigned long long *);
typedef int (*rows_fn)(void *, unsigned int *, unsigned int *, unsigned int *, unsigned int *);
typedef int (*pages_fn)(void *, int, unsigned int *, unsigned long long *);
typedef int (*pci_fn)(void *, struct pci *);
typedef int (*fabric_fn)(void *, struct fabric *);
typedef int (*fields_fn)(void *, int, struct field *);
typedef int (*processes_fn)(void *, unsigned int *, struct process *);

static int call_none(void *f) { return ((none_fn)f)(); }
static int call_text(void *f, uintptr_t gpu, char *to, unsigned int n) { return ((text_fn)f)((void *)gpu, to, n); }
static int call_system_text(void *f, char *to, unsigned int n) { return ((system_text_fn)f)(to, n); }
static int call_count(void *f, unsigned int *n) { return ((count_fn)f)(n); }
static int call_handle(void *f, unsigned int i, uintptr_t *gpu) { return ((handle_fn)f)(i, (void **)gpu); }
static int call_one(void *f, uintptr_t gpu, unsigned int *n) { return ((one_fn)f)((void *)gpu, n); }
static int call_indexed(void *f, uintptr_t gpu, unsigned int i, unsigned int *n) { return ((indexed_fn)f)((void *)gpu, i, n); }
static int call_wide(void *f, uintptr_t gpu, unsigned long long *n) { return ((wide_fn)f)((void *)gpu, n); }
static int call_errors(void *f, uintptr_t gpu, int type, int counter, int place, unsigned long long *n) { return ((errors_fn)f)((void *)gpu, type, counter, place, n); }
static int call_rows(void *f, uintptr_t gpu, unsigned int *v) { return ((rows_fn)f)((void *)gpu, v, v + 1, v + 2, v + 3); }
static int call_pages(void *f, uintptr_t gpu, int cause, unsigned int *n) { *n = 0; return ((pages_fn)f)((void *)gpu, cause, n, 0); }
static int call_pci(void *f, uintptr_t gpu, struct pci *p) { return ((pci_fn)f)((void *)gpu, p); }
static int call_fabric(void *f, uintptr_t gpu, struct fabric *p) { return ((fabric_fn)f)((void *)gpu, p); }
static int call_fields(void *f, uintptr_t gpu, struct field *p) { return ((fields_fn)f)((void *)gpu, 1, p); }
static int call_two(void *f, uintptr_t gpu, unsigned int *v) { return ((two_fn)f)((void *)gpu, v, v + 1); }
static int call_pair(void *f, uintptr_t gpu, unsigned int *v) { return ((pair_fn)f)((void *)gpu, v); }
static int call_sram(void *f, uintptr_t gpu, struct sram *p) { p->version = (unsigned int)sizeof(*p) | 1u << 24; return ((sram_fn)f)((void *)gpu, p); }
static int call_processes(void *f, uintptr_t gpu, unsigned int *n, struct process *p) { return ((processes_fn)f)((void *)gpu, n, p); }
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// nvmlCode is an nvmlReturn_t.
type nvmlCode int

// The codes that checks tell apart.
const (
	nvmlOK           nvmlCode = 0
	nvmlNotSupported nvmlCode = 3
	nvmlNotFound     nvmlCode = 6
	nvmlSmall        nvmlCode = 7
	nvmlNoDriver     nvmlCode = 9
	nvmlNoLibrary    nvmlCode = 12
	nvmlNoFunction   nvmlCode = 13
	nvmlInforom      nvmlCode = 14
	nvmlLost         nvmlCode = 15
	nvmlReset        nvmlCode = 16
	nvmlMismatch     nvmlCode = 18
	nvmlNoGPU        nvmlCode = 28
)

var nvmlWords = map[nvmlCode]string{
	4: "no permission", 9: "the driver is not loaded", 10: "timeout", 11: "an interrupt of a GPU is not delivered",
	12: "the library libnvidia-ml.so.1 cannot be loaded", 13: "the library lacks a call", 14: "the infoROM is corrupted",
	15: "a GPU is lost", 16: "a GPU wants a reset", 17: "the operating system refuses the device",
	18: "the driver and its library are of different versions", 28: "no GPU is found", 999: "unknown error of the driver",
}

func (c nvmlCode) String() string {
	if words := nvmlWords[c]; words != "" {
		return words
	}
	return fmt.Sprintf("NVML error %d", int(c))
}

// nvml is the driver's library, loaded when the program runs: most nodes with GPUs
// have another version of it, and those without have none. Calls can hang, and
// loading runs its code: only in a child.
type nvml struct {
	handle unsafe.Pointer
	calls  map[string]unsafe.Pointer
}

// nvmlGPU is a handle, a pointer of the library's own: a number to Go.
type nvmlGPU = C.uintptr_t

// openNVML loads and initializes the library.
func openNVML(path string) (*nvml, nvmlCode) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	handle := C.dlopen(name, C.RTLD_LAZY|C.RTLD_LOCAL)
	if handle == nil {
		return nil, nvmlNoLibrary
	}
	n := &nvml{handle, map[string]unsafe.Pointer{}}
	code := n.with("nvmlInit_v2", func(f unsafe.Pointer) C.int { return C.call_none(f) })
	if code != nvmlOK {
		return nil, code
	}
	return n, nvmlOK
}

func (n *nvml) close() {
	n.with("nvmlShutdown", func(f unsafe.Pointer) C.int { return C.call_none(f) })
}

// with calls a function of the library, if this version has it.
func (n *nvml) with(name string, call func(unsafe.Pointer) C.int) nvmlCode {
	f, known := n.calls[name]
	if !known {
		c := C.CString(name)
		f = C.dlsym(n.handle, c)
		C.free(unsafe.Pointer(c))
		n.calls[name] = f
	}
	if f == nil {
		return nvmlNoFunction
	}
	return nvmlCode(call(f))
}

func (n *nvml) driver() (string, nvmlCode) {
	var text [96]C.char
	code := n.with("nvmlSystemGetDriverVersion", func(f unsafe.Pointer) C.int { return C.call_system_text(f, &text[0], 80) })
	return C.GoString(&text[0]), code
}

func (n *nvml) count() (int, nvmlCode) {
	var count C.uint
	code := n.with("nvmlDeviceGetCount_v2", func(f unsafe.Pointer) C.int { return C.call_count(f, &count) })
	return int(count), code
}

func (n *nvml) gpu(index int) (nvmlGPU, nvmlCode) {
	var gpu nvmlGPU
	code := n.with("nvmlDeviceGetHandleByIndex_v2", func(f unsafe.Pointer) C.int { return C.call_handle(f, C.uint(index), &gpu) })
	return gpu, code
}

func (n *nvml) text(name string, gpu nvmlGPU) (string, nvmlCode) {
	var text [128]C.char
	code := n.with(name, func(f unsafe.Pointer) C.int { return C.call_text(f, gpu, &text[0], 96) })
	return C.GoString(&text[0]), code
}

func (n *nvml) pci(gpu nvmlGPU) (string, nvmlCode) {
	var p C.struct_pci
	code := n.with("nvmlDeviceGetPciInfo_v3", func(f unsafe.Pointer) C.int { return C.call_pci(f, gpu, &p) })
	p.address[31] = 0
	return C.GoString(&p.address[0]), code
}

func (n *nvml) one(name string, gpu nvmlGPU) (int64, nvmlCode) {
	var v C.uint
	code := n.with(name, func(f unsafe.Pointer) C.int { return C.call_one(f, gpu, &v) })
	return int64(v), code
}

func (n *nvml) indexed(name string, gpu nvmlGPU, which int) (int64, nvmlCode) {
	var v C.uint
	code := n.with(name, func(f unsafe.Pointer) C.int { return C.call_indexed(f, gpu, C.uint(which), &v) })
	return int64(v), code
}

// clocks is the mask of reasons; before driver 535 the call has another name.
func (n *nvml) clocks(gpu nvmlGPU) (int64, nvmlCode) {
	var v C.ulonglong
	call := func(f unsafe.Pointer) C.int { return C.call_wide(f, gpu, &v) }
	code := n.with("nvmlDeviceGetCurrentClocksEventReasons", call)
	if code == nvmlNoFunction {
		code = n.with("nvmlDeviceGetCurrentClocksThrottleReasons", call)
	}
	return int64(v), code
}

// The arguments of errors.
const (
	eccCorrected, eccUncorrected = 0, 1
	eccVolatile, eccAggregate    = 0, 1 // since the driver was loaded; of the GPU's life
	eccDRAM, eccSRAM             = 2, 7
)

func (n *nvml) errors(gpu nvmlGPU, kind, since, place int) (int64, nvmlCode) {
	var v C.ulonglong
	code := n.with("nvmlDeviceGetMemoryErrorCounter", func(f unsafe.Pointer) C.int {
		return C.call_errors(f, gpu, C.int(kind), C.int(since), C.int(place), &v)
	})
	return int64(v), code
}

// rows are remapped ones: corrected, uncorrected, pending, failed.
func (n *nvml) rows(gpu nvmlGPU) ([4]int64, nvmlCode) {
	var v [4]C.uint
	code := n.with("nvmlDeviceGetRemappedRows", func(f unsafe.Pointer) C.int { return C.call_rows(f, gpu, &v[0]) })
	return [4]int64{int64(v[0]), int64(v[1]), int64(v[2]), int64(v[3])}, code
}

// retired counts pages retired for a cause: 0 single bit errors, 1 double bit errors.
func (n *nvml) retired(gpu nvmlGPU, cause int) (int64, nvmlCode) {
	var v C.uint
	code := n.with("nvmlDeviceGetRetiredPages", func(f unsafe.Pointer) C.int { return C.call_pages(f, gpu, C.int(cause), &v) })
	if code == nvmlSmall { // the answer where no room for addresses is given
		code = nvmlOK
	}
	return int64(v), code
}

func (n *nvml) fabric(gpu nvmlGPU) (state int, status, code nvmlCode) {
	var v C.struct_fabric
	code = n.with("nvmlDeviceGetGpuFabricInfo", func(f unsafe.Pointer) C.int { return C.call_fabric(f, gpu, &v) })
	return int(v.state), nvmlCode(v.status), code
}

// mig is the MIG mode: 1 is on.
func (n *nvml) mig(gpu nvmlGPU) (int64, nvmlCode) {
	var v [2]C.uint // now, and after a reset
	code := n.with("nvmlDeviceGetMigMode", func(f unsafe.Pointer) C.int { return C.call_two(f, gpu, &v[0]) })
	return int64(v[0]), code
}

// busy is how much of the last moments the GPU computed, in percent.
func (n *nvml) busy(gpu nvmlGPU) (int64, nvmlCode) {
	var v [2]C.uint // the GPU, its memory
	code := n.with("nvmlDeviceGetUtilizationRates", func(f unsafe.Pointer) C.int { return C.call_pair(f, gpu, &v[0]) })
	return int64(v[0]), code
}

// sramExceeded is 1 if the GPU has had more errors in SRAM than NVIDIA's field
// diagnosis lets pass. Driver 535 and later.
func (n *nvml) sramExceeded(gpu nvmlGPU) (int64, nvmlCode) {
	var v C.struct_sram
	code := n.with("nvmlDeviceGetSramEccErrorStatus", func(f unsafe.Pointer) C.int { return C.call_sram(f, gpu, &v) })
	return int64(v.exceeded), code
}

// field is one value of nvml.h's NVML_FI_ list, of an unsigned type.
func (n *nvml) field(gpu nvmlGPU, id int) (int64, nvmlCode) {
	v := C.struct_field{id: C.uint(id)}
	code := n.with("nvmlDeviceGetFieldValues", func(f unsafe.Pointer) C.int { return C.call_fields(f, gpu, &v) })
	if code == nvmlOK {
		code = nvmlCode(v.code)
	}
	if v._type == 2 || v._type == 3 { // unsigned long, unsigned long long
		return int64(*(*uint64)(unsafe.Pointer(&v.value))), code
	}
	return int64(*(*uint32)(unsafe.Pointer(&v.value))), code
}

// processes are the pids that compute on the GPU, in the host's numbers.
func (n *nvml) processes(gpu nvmlGPU) ([]int, nvmlCode) {
	var list [1024]C.struct_process
	count := C.uint(len(list))
	code := n.with("nvmlDeviceGetComputeRunningProcesses_v3", func(f unsafe.Pointer) C.int {
		return C.call_processes(f, gpu, &count, &list[0])
	})
	var pids []int
	if code != nvmlOK {
		return nil, code
	}
	for _, p := range list[:min(int(count), len(list))] {
		pids = append(pids, int(p.pid))
	}
	return pids, code
}
