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
func (q *gpuQuery) hasAnswer(what string, code nvmlCode) bool {
	if code != nvmlOK && code != nvmlNotSupported && code != nvmlNoFunction {
		q.gpu.failed[what] = code
	}
	return code == nvmlOK
}

// queryNumber returns a number from an NVML call, or absent.
func queryNumber[T ~int | ~int32 | ~uint32 | ~uint64](q *gpuQuery, what, name string, f func() (T, nvml.Return)) int64 {
	v, code := callGetter(q.library, name, f)
	if !q.hasAnswer(what, code) {
		return absent
	}
	return int64(v)
}

// queryText returns a text from an NVML call, or "".
func (q *gpuQuery) queryText(what, name string, f func() (string, nvml.Return)) string {
	v, code := callGetter(q.library, name, f)
	q.hasAnswer(what, code)
	return v
}

// queryField returns one unsigned value of nvml.h's NVML_FI_ list, or absent. Older drivers do
// not support all fields.
func (q *gpuQuery) queryField(what string, id uint32) int64 {
	v := []nvml.FieldValue{{FieldId: id}}
	code := q.library.callFunction("nvmlDeviceGetFieldValues", func() nvml.Return { return q.device.GetFieldValues(v) })
	if code == nvmlOK {
		code = nvmlCode(v[0].NvmlReturn)
	}
	if code == nvmlBadArgument || !q.hasAnswer(what, code) {
		return absent
	}
	switch nvml.ValueType(v[0].ValueType) {
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG:
		return int64(binary.NativeEndian.Uint64(v[0].Value[:]))
	}
	return int64(binary.NativeEndian.Uint32(v[0].Value[:]))
}

// querySettings queries persistence mode, application clocks, MIG mode and vBIOS.
func (q *gpuQuery) querySettings() {
	g, d := q.gpu, q.device
	g.persistence = queryNumber(q, "persistence mode", "nvmlDeviceGetPersistenceMode", d.GetPersistenceMode)
	g.appClock = queryNumber(q, "application clocks", "nvmlDeviceGetApplicationsClock",
		bindArgument(d.GetApplicationsClock, nvml.CLOCK_SM))
	g.defaultClock = queryNumber(q, "application clocks", "nvmlDeviceGetDefaultApplicationsClock",
		bindArgument(d.GetDefaultApplicationsClock, nvml.CLOCK_SM))
	g.mig = queryNumber(q, "MIG", "nvmlDeviceGetMigMode", func() (int, nvml.Return) {
		now, _, code := d.GetMigMode()
		return now, code
	})
	g.vbios = q.queryText("vBIOS", "nvmlDeviceGetVbiosVersion", d.GetVbiosVersion)
}

// queryPCIe queries the width, generation and replays of the PCIe link.
func (q *gpuQuery) queryPCIe() {
	g, d := q.gpu, q.device
	g.width = queryNumber(q, "PCIe width", "nvmlDeviceGetCurrPcieLinkWidth", d.GetCurrPcieLinkWidth)
	g.maxWidth = queryNumber(q, "PCIe width", "nvmlDeviceGetMaxPcieLinkWidth", d.GetMaxPcieLinkWidth)
	g.generation = queryNumber(q, "PCIe generation", "nvmlDeviceGetCurrPcieLinkGeneration", d.GetCurrPcieLinkGeneration)
	g.maxGeneration = queryNumber(q, "PCIe generation", "nvmlDeviceGetMaxPcieLinkGeneration",
		d.GetMaxPcieLinkGeneration)
	g.replays = queryNumber(q, "PCIe replays", "nvmlDeviceGetPcieReplayCounter", d.GetPcieReplayCounter)
}

// queryCondition queries temperatures, power, clocks, utilization and the recovery action.
func (q *gpuQuery) queryCondition() {
	g, d := q.gpu, q.device
	g.temperature = queryNumber(q, "temperature", "nvmlDeviceGetTemperature",
		bindArgument(d.GetTemperature, nvml.TEMPERATURE_GPU))
	g.slowdown = queryNumber(q, "temperature threshold", "nvmlDeviceGetTemperatureThreshold",
		bindArgument(d.GetTemperatureThreshold, nvml.TEMPERATURE_THRESHOLD_SLOWDOWN))
	g.memoryTemperature = q.queryField("memory temperature", nvml.FI_DEV_MEMORY_TEMP)
	g.memoryMax = queryNumber(q, "memory temperature", "nvmlDeviceGetTemperatureThreshold",
		bindArgument(d.GetTemperatureThreshold, nvml.TEMPERATURE_THRESHOLD_MEM_MAX))
	g.power = queryNumber(q, "power", "nvmlDeviceGetPowerUsage", d.GetPowerUsage)
	clocks, code := callGetter(q.library, "nvmlDeviceGetCurrentClocksEventReasons", d.GetCurrentClocksEventReasons)
	if code == nvmlNoFunction { // before driver 535 the function has another name
		clocks, code = callGetter(q.library, "nvmlDeviceGetCurrentClocksThrottleReasons",
			d.GetCurrentClocksThrottleReasons)
	}
	if g.clocks = absent; q.hasAnswer("clocks", code) {
		g.clocks = int64(clocks)
	}
	g.busy = queryNumber(q, "utilization", "nvmlDeviceGetUtilizationRates", func() (uint32, nvml.Return) {
		v, code := d.GetUtilizationRates()
		return v.Gpu, code
	})
	g.recovery = q.queryField("recovery action", nvml.FI_DEV_GET_GPU_RECOVERY_ACTION)
	pids, code := callGetter(q.library, "nvmlDeviceGetComputeRunningProcesses_v3", d.GetComputeRunningProcesses)
	q.hasAnswer("processes", code)
	for _, p := range pids {
		g.pids = append(g.pids, int(p.Pid))
	}
}

// queryMemory queries ECC errors, remapped rows and retired pages.
func (q *gpuQuery) queryMemory() {
	g, d := q.gpu, q.device
	ecc := func(kind nvml.MemoryErrorType, since nvml.EccCounterType, place nvml.MemoryLocation) int64 {
		return queryNumber(q, "ECC", "nvmlDeviceGetMemoryErrorCounter",
			func() (uint64, nvml.Return) { return d.GetMemoryErrorCounter(kind, since, place) })
	}
	g.volatileSRAM = ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC, nvml.MEMORY_LOCATION_SRAM)
	g.volatileDRAM = ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC, nvml.MEMORY_LOCATION_DRAM)
	g.aggregate = max(ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC, nvml.MEMORY_LOCATION_SRAM),
		ecc(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC, nvml.MEMORY_LOCATION_DRAM))
	g.corrected = ecc(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC, nvml.MEMORY_LOCATION_DRAM)
	g.sramExceeded = queryNumber(q, "ECC", "nvmlDeviceGetSramEccErrorStatus", func() (uint32, nvml.Return) {
		v, code := d.GetSramEccErrorStatus()
		return v.BThresholdExceeded, code
	})
	g.rows = queryNumber(q, "row remapping", "nvmlDeviceGetRemappedRows", func() (rows int, code nvml.Return) {
		_, rows, g.rowsPending, g.rowsFailed, code = d.GetRemappedRows()
		return rows, code
	})
	g.retired = 0
	for cause := range nvml.PAGE_RETIREMENT_CAUSE_COUNT {
		n := queryNumber(q, "retired pages", "nvmlDeviceGetRetiredPages", func() (int, nvml.Return) {
			pages, code := d.GetRetiredPages(cause)
			return len(pages), code
		})
		if g.retired += n; n == absent {
			g.retired = absent
			break
		}
	}
	g.retiredPending = queryNumber(q, "retired pages", "nvmlDeviceGetRetiredPagesPendingStatus",
		d.GetRetiredPagesPendingStatus)
}

// maxLinks is NVML_NVLINK_MAX_LINKS of the current nvml.h; the constant of go-nvml is older.
const maxLinks = 36

// queryLinks queries the NVLinks and their error counters.
func (q *gpuQuery) queryLinks() {
	g, d := q.gpu, q.device
	q.queryFabric()
	for link := range maxLinks {
		active, code := callGetter(q.library, "nvmlDeviceGetNvLinkState", bindArgument(d.GetNvLinkState, link))
		if code == nvmlBadArgument || code == nvmlNoFunction { // the link does not exist
			break
		}
		if q.hasAnswer("NVLink", code) {
			g.links++
			g.activeLinks += int(active & nvml.FEATURE_ENABLED)
		}
	}
	g.linkErrors = absent
	for _, field := range []uint32{nvml.FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL,
		nvml.FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL,
		nvml.FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, nvml.FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL} {
		if v := q.queryField("NVLink errors", field); v != absent {
			g.linkErrors = max(g.linkErrors, 0) + v
		}
	}
}
