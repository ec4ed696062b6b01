// SPDX-License-Identifier: Apache-2.0

package main

// dashboard is one dashboard. Its links lead to all others, which have the tag gojail.
type dashboard struct {
	name, title string // name is the file's, and the uid in Grafana
	variables   []variable
	panels      []panel
}

// variable is a choice at the top of a dashboard.
type variable struct {
	name, label string
	query       string // of Prometheus: label_values(METRIC, LABEL)
	kind        int
}

// The kinds of variables.
const (
	chooseAny = iota // some, or all
	chooseOne
	hidden // follows from the others; all of its values count
)

// panel is a panel, or a heading.
type panel struct {
	kind         string // Grafana's: row, stat, timeseries, table
	title, about string
	unit         string // Grafana's
	width        int    // of 24 columns
	queries      []query
	limits       []limit  // of a stat
	columns      []column // of a table, from left to right
}

// query is a query, with what its lines are called.
type query struct{ expr, legend string }

// limit is the value from which on a stat has a color.
type limit struct {
	value float64
	color string
}

// column is a column of a table: a label, or Value, and its heading.
type column struct{ label, heading string }

func row(title string) panel { return panel{kind: "row", title: title, width: 24} }

// stat returns a panel with one number, which is not 0 by chance: no series counts as 0.
func stat(title, about, unit, expr string, limits ...limit) panel {
	return panel{kind: "stat", title: title, about: about, unit: unit, width: 4, queries: []query{{expr, ""}},
		limits: limits}
}

// The colors of a number that should be 0.
var (
	red    = limit{1, "red"}
	orange = limit{1, "orange"}
)

func graph(title, about, unit string, queries ...query) panel {
	return panel{kind: "timeseries", title: title, about: about, unit: unit, width: 8, queries: queries}
}

func table(title, about, expr string, columns ...column) panel {
	return panel{kind: "table", title: title, about: about, width: 12, queries: []query{{expr, ""}}, columns: columns}
}

// wide returns the panel in another width.
func (p panel) wide(width int) panel {
	p.width = width
	return p
}
