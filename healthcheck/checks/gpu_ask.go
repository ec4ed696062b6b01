// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"encoding/binary"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// gpuQuery queries the library about one GPU.
type gpuQuery struct {
	library *nvmlLibrary
	device  nvml.Device
	gpu     *gpuState
}

// hasAnswer reports whether a call succeeded, and records the error of a call that is supported
// but failed.
func (a *gpuQuery) hasAnswer(what string, code nvmlCode) bool {
	if code != nvmlOK && code != nvmlNotSupported && code != nvmlNoFunction {
		a.gpu.failed[what] = code
	}
	return code == nvmlOK
}

// queryNumber returns a number from an NVML call, or absent.
func queryNumber[T ~int | ~int32 | ~uint32 | ~uint64](a *gpuQuery, what, name string, f func() (T, nvml.Return)) int64 {
	v, code := callGetter(a.library, name, f)
	if !a.hasAnswer(what, code) {
		return absent
	}
	return int64(v)
}

// queryText returns a text from an NVML call, or "".
func (a *gpuQuery) queryText(what, name string, f func() (string, nvml.Return)) string {
	v, code := callGetter(a.library, name, f)
	a.hasAnswer(what, code)
	return v
}

// queryField returns one unsigned value of nvml.h's NVML_FI_ list, or absent. Older drivers do
// not support all fields.
func (a *gpuQuery) queryField(what string, id uint32) int64 {
	v := []nvml.FieldValue{{FieldId: id}}
	code := a.library.callFunction("nvmlDeviceGetFieldValues", func() nvml.Return { return a.device.GetFieldValues(v) })
	if code == nvmlOK {
		code = nvmlCode(v[0].NvmlReturn)
	}
	if code == nvmlBadArgument || !a.hasAnswer(what, code) {
		return absent
	}
	switch nvml.ValueType(v[0].ValueType) {
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG:
		return int64(binary.NativeEndian.Uint64(v[0].Value[:]))
	}
	return int64(binary.NativeEndian.Uint32(v[0].Value[:]))
}

// querySettings queries persistence mode, application clocks, MIG mode and vBIOS.
func (a *gpuQuery) querySettings() {
	g, d := a.gpu, a.device
	g.persistence = queryNumber(a, "persistence mode", "nvmlDeviceGetPersistenceMode", d.GetPersistenceMode)
	g.appClock = queryNumber(a, "application clocks", "nvmlDeviceGetApplicationsClock", bindArgument(d.GetApplicationsClock, nvml.CLOCK_SM))
	g.defaultClock = queryNumber(a, "application clocks", "nvmlDeviceGetDefaultApplicationsClock", bindArgument(d.GetDefaultApplicationsClock, nvml.CLOCK_SM))
	g.mig = queryNumber(a, "MIG", "nvmlDeviceGetMigMode", func() (int, nvml.Return) {
		now, _, code := d.GetMigMode()
		return now, code
	})
	g.vbios = a.queryText("vBIOS", "nvmlDeviceGetVbiosVersion", d.GetVbiosVersion)
}

// queryPCIe queries the width, generation and replays of the PCIe link.
func (a *gpuQuery) queryPCIe() {
	g, d := a.gpu, a.device
	g.width = queryNumber(a, "PCIe width", "nvmlDeviceGetCurrPcieLinkWidth", d.GetCurrPcieLinkWidth)
	g.maxWidth = queryNumber(a, "PCIe width", "nvmlDeviceGetMaxPcieLinkWidth", d.GetMaxPcieLinkWidth)
	g.generation = queryNumber(a, "PCIe generation", "nvmlDeviceGetCurrPcieLinkGeneration", d.GetCurrPcieLinkGeneration)
	g.maxGeneration = queryNumber(a, "PCIe generation", "nvmlDeviceGetMaxPcieLinkGeneration", d.GetMaxPcieLinkGeneration)
	g.replays = queryNumber(a, "PCIe replays", "nvmlDeviceGetPcieReplayCounter", d.GetPcieReplayCounter)
}

// queryCondition queries temperatures, power, clocks, utilization and the recovery action.
func (a *gpuQuery) queryCondition() {
	g, d := a.gpu, a.device
	g.temperature = queryNumber(a, "temperature", "nvmlDeviceGetTemperature", bindArgument(d.GetTemperature, nvml.TEMPERATURE_GPU))
	g.slowdown = queryNumber(a, "temperature threshold", "nvmlDeviceGetTemperatureThreshold", bindArgument(d.GetTemperatureThreshold, nvml.TEMPERATURE_THRESHOLD_SLOWDOWN))
	g.memoryTemperature = a.queryField("memory temperature", nvml.FI_DEV_MEMORY_TEMP)
	g.memoryMax = queryNumber(a, "memory temperature", "nvmlDeviceGetTemperatureThreshold", bindArgument(d.GetTemperatureThreshold, nvml.TEMPERATURE_THRESHOLD_MEM_MAX))
	g.power = queryNumber(a, "power", "nvmlDeviceGetPowerUsage", d.GetPowerUsage)
	clocks, code := callGetter(a.library, "nvmlDeviceGetCurrentClocksEventReasons", d.GetCurrentClocksEventReasons)
	if code == nvmlNoFunction { // before driver 535 the function has another name
		clocks, code = callGetter(a.library, "nvmlDeviceGetCurrentClocksThrottleReasons", d.GetCurrentClocksThrottleReasons)
	}
	if g.clocks = absent; a.hasAnswer("clocks", code) {
		g.clocks = int64(clocks)
	}
	g.busy = queryNumber(a, "utilization", "nvmlDeviceGetUtilizationRates", func() (uint32, nvml.Return) {
		v, code := d.GetUtilizationRates()
		return v.Gpu, code
	})
	g.recovery = a.queryField("recovery action", nvml.FI_DEV_GET_GPU_RECOVERY_ACTION)
	pids, code := callGetter(a.library, "nvmlDeviceGetComputeRunningProcesses_v3", d.GetComputeRunningProcesses)
	a.hasAnswer("processes", code)
	for _, p := range pids {
		g.pids = append(g.pids, int(p.Pid))
	}
}

// queryMemory queries ECC errors, remapped rows and retired pages.
func (a *gpuQuery) queryMemory() {
	g, d := a.gpu, a.device
	ecc := func(kind nvml.MemoryErrorType, since nvml.EccCounterType, place nvml.MemoryLocation) int64 {
		return queryNumber(a, "ECC", "nvmlDeviceGetMemoryErrorCounter", func() (uint64, nvml.Return) { return d.GetMemoryErrorCounter(kind, since, place) })
	}
	g.volatileSRAM = ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC, nvml.MEMORY_LOCATION_SRAM)
	g.volatileDRAM = ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC, nvml.MEMORY_LOCATION_DRAM)
	g.aggregate = max(ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC, nvml.MEMORY_LOCATION_SRAM),
		ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC, nvml.MEMORY_LOCATION_DRAM))
	g.corrected = ecc(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC, nvml.MEMORY_LOCATION_DRAM)
	g.sramExceeded = queryNumber(a, "ECC", "nvmlDeviceGetSramEccErrorStatus", func() (uint32, nvml.Return) {
		v, code := d.GetSramEccErrorStatus()
		return v.BThresholdExceeded, code
	})
	g.rows = queryNumber(a, "row remapping", "nvmlDeviceGetRemappedRows", func() (rows int, code nvml.Return) {
		_, rows, g.rowsPending, g.rowsFailed, code = d.GetRemappedRows()
		return rows, code
	})
	g.retired = 0
	for cause := range nvml.PAGE_RETIREMENT_CAUSE_COUNT {
		n := queryNumber(a, "retired pages", "nvmlDeviceGetRetiredPages", func() (int, nvml.Return) {
			pages, code := d.GetRetiredPages(cause)
			return len(pages), code
		})
		if g.retired += n; n == absent {
			g.retired = absent
			break
		}
	}
	g.retiredPending = queryNumber(a, "retired pages", "nvmlDeviceGetRetiredPagesPendingStatus", d.GetRetiredPagesPendingStatus)
}

// maxLinks is NVML_NVLINK_MAX_LINKS of the current nvml.h; the constant of go-nvml is older.
const maxLinks = 36

// queryLinks queries the NVLinks and their error counters.
func (a *gpuQuery) queryLinks() {
	g, d := a.gpu, a.device
	fabric, code := callGetter(a.library, "nvmlDeviceGetGpuFabricInfo", d.GetGpuFabricInfo)
	if g.fabricState = absent; a.hasAnswer("fabric", code) {
		g.fabricState, g.fabricStatus = int64(fabric.State), nvmlCode(fabric.Status)
	}
	for link := range maxLinks {
		active, code := callGetter(a.library, "nvmlDeviceGetNvLinkState", bindArgument(d.GetNvLinkState, link))
		if code == nvmlBadArgument || code == nvmlNoFunction { // the link does not exist
			break
		}
		if a.hasAnswer("NVLink", code) {
			g.links++
			g.activeLinks += int(active & nvml.FEATURE_ENABLED)
		}
	}
	g.linkErrors = absent
	for _, field := range []uint32{nvml.FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, nvml.FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL,
		nvml.FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, nvml.FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL} {
		if v := a.queryField("NVLink errors", field); v != absent {
			g.linkErrors = max(g.linkErrors, 0) + v
		}
	}
}
