// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"encoding/binary"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// asking asks the library about one GPU.
type asking struct {
	library *nvmlLibrary
	device  nvml.Device
	gpu     *gpuState
}

// answered notes why there is no answer, where one was to be had.
func (a *asking) answered(what string, code nvmlCode) bool {
	if code != nvmlOK && code != nvmlNotSupported && code != nvmlNoFunction {
		a.gpu.failed[what] = code
	}
	return code == nvmlOK
}

// value asks for a number.
func value[T ~int | ~int32 | ~uint32 | ~uint64](a *asking, what, name string, f func() (T, nvml.Return)) int64 {
	v, code := get(a.library, name, f)
	if !a.answered(what, code) {
		return absent
	}
	return int64(v)
}

func (a *asking) text(what, name string, f func() (string, nvml.Return)) string {
	v, code := get(a.library, name, f)
	a.answered(what, code)
	return v
}

// field asks for one value of nvml.h's NVML_FI_ list, of an unsigned type. Older
// drivers do not know all of them.
func (a *asking) field(what string, id uint32) int64 {
	v := []nvml.FieldValue{{FieldId: id}}
	code := a.library.call("nvmlDeviceGetFieldValues", func() nvml.Return { return a.device.GetFieldValues(v) })
	if code == nvmlOK {
		code = nvmlCode(v[0].NvmlReturn)
	}
	if code == nvmlBadArgument || !a.answered(what, code) {
		return absent
	}
	switch nvml.ValueType(v[0].ValueType) {
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG:
		return int64(binary.NativeEndian.Uint64(v[0].Value[:]))
	}
	return int64(binary.NativeEndian.Uint32(v[0].Value[:]))
}

func (a *asking) settings() {
	g, d := a.gpu, a.device
	g.persistence = value(a, "persistence mode", "nvmlDeviceGetPersistenceMode", d.GetPersistenceMode)
	g.appClock = value(a, "application clocks", "nvmlDeviceGetApplicationsClock", of(d.GetApplicationsClock, nvml.CLOCK_SM))
	g.usualClock = value(a, "application clocks", "nvmlDeviceGetDefaultApplicationsClock", of(d.GetDefaultApplicationsClock, nvml.CLOCK_SM))
	g.mig = value(a, "MIG", "nvmlDeviceGetMigMode", func() (int, nvml.Return) {
		now, _, code := d.GetMigMode()
		return now, code
	})
	g.vbios = a.text("vBIOS", "nvmlDeviceGetVbiosVersion", d.GetVbiosVersion)
}

func (a *asking) pcie() {
	g, d := a.gpu, a.device
	g.width = value(a, "PCIe width", "nvmlDeviceGetCurrPcieLinkWidth", d.GetCurrPcieLinkWidth)
	g.maxWidth = value(a, "PCIe width", "nvmlDeviceGetMaxPcieLinkWidth", d.GetMaxPcieLinkWidth)
	g.generation = value(a, "PCIe generation", "nvmlDeviceGetCurrPcieLinkGeneration", d.GetCurrPcieLinkGeneration)
	g.maxGeneration = value(a, "PCIe generation", "nvmlDeviceGetMaxPcieLinkGeneration", d.GetMaxPcieLinkGeneration)
	g.replays = value(a, "PCIe replays", "nvmlDeviceGetPcieReplayCounter", d.GetPcieReplayCounter)
}

func (a *asking) condition() {
	g, d := a.gpu, a.device
	g.temperature = value(a, "temperature", "nvmlDeviceGetTemperature", of(d.GetTemperature, nvml.TEMPERATURE_GPU))
	g.slowdown = value(a, "temperature threshold", "nvmlDeviceGetTemperatureThreshold", of(d.GetTemperatureThreshold, nvml.TEMPERATURE_THRESHOLD_SLOWDOWN))
	g.memoryHeat = a.field("memory temperature", nvml.FI_DEV_MEMORY_TEMP)
	g.memoryMax = value(a, "memory temperature", "nvmlDeviceGetTemperatureThreshold", of(d.GetTemperatureThreshold, nvml.TEMPERATURE_THRESHOLD_MEM_MAX))
	g.power = value(a, "power", "nvmlDeviceGetPowerUsage", d.GetPowerUsage)
	clocks, code := get(a.library, "nvmlDeviceGetCurrentClocksEventReasons", d.GetCurrentClocksEventReasons)
	if code == nvmlNoFunction { // before driver 535 the call has another name
		clocks, code = get(a.library, "nvmlDeviceGetCurrentClocksThrottleReasons", d.GetCurrentClocksThrottleReasons)
	}
	if g.clocks = absent; a.answered("clocks", code) {
		g.clocks = int64(clocks)
	}
	g.busy = value(a, "utilization", "nvmlDeviceGetUtilizationRates", func() (uint32, nvml.Return) {
		v, code := d.GetUtilizationRates()
		return v.Gpu, code
	})
	g.recovery = a.field("recovery action", nvml.FI_DEV_GET_GPU_RECOVERY_ACTION)
	pids, code := get(a.library, "nvmlDeviceGetComputeRunningProcesses_v3", d.GetComputeRunningProcesses)
	a.answered("processes", code)
	for _, p := range pids {
		g.pids = append(g.pids, int(p.Pid))
	}
}

func (a *asking) memory() {
	g, d := a.gpu, a.device
	ecc := func(kind nvml.MemoryErrorType, since nvml.EccCounterType, place nvml.MemoryLocation) int64 {
		return value(a, "ECC", "nvmlDeviceGetMemoryErrorCounter", func() (uint64, nvml.Return) { return d.GetMemoryErrorCounter(kind, since, place) })
	}
	g.volatileSRAM = ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC, nvml.MEMORY_LOCATION_SRAM)
	g.volatileDRAM = ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC, nvml.MEMORY_LOCATION_DRAM)
	g.aggregate = max(ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC, nvml.MEMORY_LOCATION_SRAM),
		ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC, nvml.MEMORY_LOCATION_DRAM))
	g.corrected = ecc(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC, nvml.MEMORY_LOCATION_DRAM)
	g.sramExceeded = value(a, "ECC", "nvmlDeviceGetSramEccErrorStatus", func() (uint32, nvml.Return) {
		v, code := d.GetSramEccErrorStatus()
		return v.BThresholdExceeded, code
	})
	g.rows = value(a, "row remapping", "nvmlDeviceGetRemappedRows", func() (rows int, code nvml.Return) {
		_, rows, g.rowsPending, g.rowsFailed, code = d.GetRemappedRows()
		return rows, code
	})
	g.retired = 0
	for cause := range nvml.PAGE_RETIREMENT_CAUSE_COUNT {
		n := value(a, "retired pages", "nvmlDeviceGetRetiredPages", func() (int, nvml.Return) {
			pages, code := d.GetRetiredPages(cause)
			return len(pages), code
		})
		if g.retired += n; n == absent {
			g.retired = absent
			break
		}
	}
	g.retiredPending = value(a, "retired pages", "nvmlDeviceGetRetiredPagesPendingStatus", d.GetRetiredPagesPendingStatus)
}

// maxLinks is NVML_NVLINK_MAX_LINKS of today's nvml.h; go-nvml's is older.
const maxLinks = 36

func (a *asking) links() {
	g, d := a.gpu, a.device
	fabric, code := get(a.library, "nvmlDeviceGetGpuFabricInfo", d.GetGpuFabricInfo)
	if g.fabricState = absent; a.answered("fabric", code) {
		g.fabricState, g.fabricStatus = int64(fabric.State), nvmlCode(fabric.Status)
	}
	for link := range maxLinks {
		active, code := get(a.library, "nvmlDeviceGetNvLinkState", of(d.GetNvLinkState, link))
		if code == nvmlBadArgument || code == nvmlNoFunction { // there is no such link
			break
		}
		if a.answered("NVLink", code) {
			g.links++
			g.activeLinks += int(active & nvml.FEATURE_ENABLED)
		}
	}
	g.linkErrors = absent
	for _, field := range []uint32{nvml.FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, nvml.FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL,
		nvml.FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, nvml.FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL} {
		if v := a.field("NVLink errors", field); v != absent {
			g.linkErrors = max(g.linkErrors, 0) + v
		}
	}
}
