// SPDX-License-Identifier: Apache-2.0

package healthcheck

// Of nvml.h's NVML_FI_ list.
const (
	fieldMemoryHeat = 82  // NVML_FI_DEV_MEMORY_TEMP
	fieldRecovery   = 230 // NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
)

// NVML_FI_DEV_NVLINK_..._TOTAL: errors of flits, of data, replays, recoveries.
var fieldsLinkErrors = []int{38, 45, 52, 59}

// asking takes an answer, or notes why there is none.
type asking func(what string, v int64, code nvmlCode) int64

// ask asks for a field. Older drivers do not know all of them.
func (n *nvml) ask(handle nvmlGPU, field int, what string, ask asking) int64 {
	v, code := n.field(handle, field)
	if code == 2 { // invalid argument
		code = nvmlNotSupported
	}
	return ask(what, v, code)
}

func (n *nvml) settings(handle nvmlGPU, g *gpuState, ask asking) {
	one := func(what, call string) int64 { v, code := n.one(call, handle); return ask(what, v, code) }
	indexed := func(what, call string, which int) int64 {
		v, code := n.indexed(call, handle, which)
		return ask(what, v, code)
	}
	g.generation, g.maxGeneration = one("PCIe generation", "nvmlDeviceGetCurrPcieLinkGeneration"), one("PCIe generation", "nvmlDeviceGetMaxPcieLinkGeneration")
	g.replays, g.power = one("PCIe replays", "nvmlDeviceGetPcieReplayCounter"), one("power", "nvmlDeviceGetPowerUsage")
	const sm, memoryMax = 1, 2 // NVML_CLOCK_SM, NVML_TEMPERATURE_THRESHOLD_MEM_MAX
	g.appClock = indexed("application clocks", "nvmlDeviceGetApplicationsClock", sm)
	g.usualClock = indexed("application clocks", "nvmlDeviceGetDefaultApplicationsClock", sm)
	g.memoryMax = indexed("memory temperature", "nvmlDeviceGetTemperatureThreshold", memoryMax)
	g.memoryHeat = n.ask(handle, fieldMemoryHeat, "memory temperature", ask)
	v, code := n.busy(handle)
	g.busy = ask("utilization", v, code)
	v, code = n.mig(handle)
	g.mig = ask("MIG", v, code)
	v, code = n.sramExceeded(handle)
	g.sramExceeded = ask("ECC", v, code)
	g.vbios, code = n.text("nvmlDeviceGetVbiosVersion", handle)
	ask("vBIOS", 0, code)
	g.linkErrors = absent
	for _, field := range fieldsLinkErrors {
		if v := n.ask(handle, field, "NVLink errors", ask); v != absent {
			g.linkErrors = max(g.linkErrors, 0) + v
		}
	}
}

func (n *nvml) memory(handle nvmlGPU, g *gpuState, ask asking) {
	ecc := func(kind, since, place int) int64 {
		v, code := n.errors(handle, kind, since, place)
		return ask("ECC", v, code)
	}
	g.volatileSRAM, g.volatileDRAM = ecc(eccUncorrected, eccVolatile, eccSRAM), ecc(eccUncorrected, eccVolatile, eccDRAM)
	g.aggregate = max(ecc(eccUncorrected, eccAggregate, eccSRAM), ecc(eccUncorrected, eccAggregate, eccDRAM))
	g.corrected = ecc(eccCorrected, eccVolatile, eccDRAM)
	rows, code := n.rows(handle)
	for i := range rows {
		g.rows[i] = ask("row remapping", rows[i], code)
	}
	single, code := n.retired(handle, 0)
	single = ask("retired pages", single, code)
	double, code := n.retired(handle, 1)
	double = ask("retired pages", double, code)
	g.retired = absent
	if single != absent && double != absent {
		g.retired = single + double
	}
}

// maxLinks is NVML_NVLINK_MAX_LINKS.
const maxLinks = 36

func (n *nvml) fabrics(handle nvmlGPU, g *gpuState, ask asking) {
	state, status, code := n.fabric(handle)
	g.fabricState, g.fabricStatus = ask("fabric", int64(state), code), status
	for link := range maxLinks {
		active, code := n.indexed("nvmlDeviceGetNvLinkState", handle, link)
		if code == 2 { // invalid argument: there is no such link
			break
		}
		if active = ask("NVLink", active, code); active == absent {
			if code == nvmlNoFunction {
				break
			}
			continue
		}
		g.links++
		g.activeLinks += int(active & 1)
	}
}
