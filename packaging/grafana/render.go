// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"regexp"
	"strings"
)

// object is a JSON object of Grafana's dashboard model, schema 39 (Grafana 10 and later).
type object = map[string]any

// source is the data source that the user of the dashboard chooses.
var source = object{"type": "prometheus", "uid": "${datasource}"}

// render returns the JSON that Grafana imports. Panels flow from left to right, each line as high as its kind.
func (d *dashboard) render() ([]byte, error) {
	variables := []any{object{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus",
		"current": object{}, "hide": 0, "refresh": 1}}
	for _, v := range d.variables {
		variables = append(variables, v.render())
	}
	var panels []any
	x, y, height := 0, 0, 0
	for i := range d.panels {
		p := &d.panels[i]
		if x+p.width > 24 || p.height() != height {
			x, y = 0, y+height
		}
		height = p.height()
		rendered := p.render()
		rendered["id"] = i + 1
		rendered["gridPos"] = object{"h": height, "w": p.width, "x": x, "y": y}
		panels = append(panels, rendered)
		x += p.width
	}
	all := object{
		"uid": d.name, "title": d.title, "tags": []string{"gojail", "slurm"}, "schemaVersion": 39, "version": 1,
		"editable": true,
		"refresh":  "1m", "time": object{"from": "now-6h", "to": "now"}, "timezone": "",
		"annotations": object{"list": []any{}},
		"links": []any{object{"type": "dashboards", "tags": []string{"gojail"}, "asDropdown": true,
			"title": "gojail", "includeVars": true, "keepTime": true}},
		"templating": object{"list": variables}, "panels": panels,
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	err := encoder.Encode(all)
	return []byte(text.String()), err
}

// ofCluster matches the series of the cluster that gojail-exporter has, with the rate or increase that a query takes of
// them.
var ofCluster = regexp.MustCompile(`(?:(?:rate|increase)\()?\bgojail_slurm_[a-z_]+(?:\{[^}]*\})?(?:\[[^\]]*\]\))?`)

// mergeExporters returns a query in which series of the cluster count once, where several exporters have them: two that
// know nothing of each other, or both of a takeover.
func mergeExporters(expr string) string {
	return ofCluster.ReplaceAllString(expr, "max without (instance) ($0)")
}

func (v variable) render() object {
	all := object{
		"name": v.name, "label": v.label, "type": "query", "datasource": source, "query": object{"query": v.query,
			"refId": v.name},
		"definition": v.query, "refresh": 2, "sort": 7, "hide": 0, "multi": v.kind != chooseOne,
		"includeAll": v.kind != chooseOne, "current": object{},
	}
	if v.kind == hidden {
		all["hide"] = 2
	}
	if v.kind != chooseOne {
		all["current"] = object{"text": "All", "value": "$__all"}
	}
	if v.kind == chooseAny {
		all["allValue"] = ".*"
	}
	return all
}

func (p *panel) height() int {
	return map[string]int{"row": 1, "stat": 4}[p.kind] + map[string]int{"timeseries": 8, "table": 8}[p.kind]
}

func (p *panel) render() object {
	if p.kind == "row" {
		return object{"type": p.kind, "title": p.title, "collapsed": false, "panels": []any{}}
	}
	var targets []any
	for i, q := range p.queries {
		now := p.kind != "timeseries"
		target := object{"refId": string(rune('A' + i)), "datasource": source, "expr": mergeExporters(q.expr),
			"legendFormat": q.legend, "instant": now, "range": !now}
		if p.kind == "table" {
			target["format"] = "table"
		}
		targets = append(targets, target)
	}
	all := object{"type": p.kind, "title": p.title, "description": p.about, "datasource": source, "targets": targets}
	defaults := object{"unit": p.unit}
	switch p.kind {
	case "stat":
		defaults["noValue"], defaults["thresholds"] = "0", p.renderLimits()
		all["options"] = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}, "fields": "",
			"values": false},
			"colorMode": "background", "graphMode": "none", "textMode": "value"}
	case "timeseries":
		defaults["custom"] = object{"lineWidth": 1, "fillOpacity": 0, "showPoints": "never", "spanNulls": true}
		all["options"] = object{"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": true},
			"tooltip": object{"mode": "multi", "sort": "desc"}}
	case "table":
		defaults["noValue"] = "none"
		all["options"], all["transformations"] = object{"showHeader": true}, p.renderColumns()
	}
	all["fieldConfig"] = object{"defaults": defaults, "overrides": []any{}}
	return all
}

func (p *panel) renderLimits() object {
	first := "green"
	if len(p.limits) == 0 {
		first = "blue"
	}
	steps := []any{object{"color": first, "value": nil}}
	for _, l := range p.limits {
		steps = append(steps, object{"color": l.color, "value": l.value})
	}
	return object{"mode": "absolute", "steps": steps}
}

// renderColumns returns the transformations that leave the columns of a table, in their order.
func (p *panel) renderColumns() []any {
	names, order, headings := []string{}, object{}, object{}
	for i, c := range p.columns {
		names = append(names, c.label)
		order[c.label], headings[c.label] = i, c.heading
	}
	return []any{
		object{"id": "filterFieldsByName", "options": object{"include": object{"names": names}}},
		object{"id": "organize", "options": object{"indexByName": order, "renameByName": headings,
			"excludeByName": object{}}},
	}
}
