// SPDX-License-Identifier: Apache-2.0

package config

// file is network.toml as written; nil stands for a key that is missing.
type file struct {
	Default *string      `toml:"default"`
	Policy  []filePolicy `toml:"policy"`
	Rail    []fileRail   `toml:"rail"`
	Pool    []filePool   `toml:"pool"`
	Control *fileControl `toml:"control"`
	Probe   fileProbe    `toml:"probe"`
	UFM     *fileUFM     `toml:"ufm"`
}

type filePolicy struct {
	Name       string  `toml:"name"`
	Nodes      *string `toml:"nodes"`
	Priority   *int    `toml:"priority"`
	NIC        fileNIC `toml:"nic"`
	VFs        *int    `toml:"vfs"`
	Whole      *bool   `toml:"whole"`
	Link       *string `toml:"link"`
	MTU        *int    `toml:"mtu"`
	Trust      *bool   `toml:"trust"`
	SpoofCheck *bool   `toml:"spoof_check"`
	VLAN       *int    `toml:"vlan"`
	QoS        *int    `toml:"qos"`
	Proto      *string `toml:"proto"`
	MinRate    *int    `toml:"min_rate"`
	MaxRate    *int    `toml:"max_rate"`
	RDMA       *string `toml:"rdma"`
}

type fileNIC struct {
	Vendor *string  `toml:"vendor"`
	Device *string  `toml:"device"`
	Root   []string `toml:"root"`
	PF     []string `toml:"pf"`
}

type fileRail struct {
	Name   string   `toml:"name"`
	Policy *string  `toml:"policy"`
	Pools  []string `toml:"pools"`
	GRES   *string  `toml:"gres"`
	VLAN   *int     `toml:"vlan"`
	PKey   *int     `toml:"pkey"`
	Labels []string `toml:"labels"`
	Table  *int     `toml:"table"`
}

type filePool struct {
	Name      string      `toml:"name"`
	Subnet    *string     `toml:"subnet"`
	Ranges    []string    `toml:"ranges"`
	Exclude   []string    `toml:"exclude"`
	Gateway   *string     `toml:"gateway"`
	Routes    []fileRoute `toml:"routes"`
	Nodes     *string     `toml:"nodes"`
	PerNode   *int        `toml:"per_node"`
	Directory *string     `toml:"directory"`
	Conflict  *bool       `toml:"conflict"`
}

type fileRoute struct {
	To  string  `toml:"to"`
	Via *string `toml:"via"`
}

type fileControl struct {
	Pool      *string `toml:"pool"`
	Interface *string `toml:"interface"`
	MTU       *int    `toml:"mtu"`
}

type fileProbe struct {
	Conflict *bool   `toml:"conflict"`
	Gateway  *bool   `toml:"gateway"`
	Timeout  *string `toml:"timeout"`
	Tries    *int    `toml:"tries"`
	Carrier  *string `toml:"carrier"`
}

type fileUFM struct {
	URL         *string `toml:"url"`
	Credentials *string `toml:"credentials"`
	CA          *string `toml:"ca"`
	Required    *bool   `toml:"required"`
}
