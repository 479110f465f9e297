package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// UID is the dashboard's own id.
const UID = "voicegw"

// The selectors behind "@" and "@p" of a Query.
const (
	gateways = `job=~"$job",instance=~"$instance"`
	provider = gateways + `,provider=~"$provider"`
)

// Resolve replaces "@" and "@p" in an expression.
func Resolve(expr string) string {
	return strings.ReplaceAll(strings.ReplaceAll(expr, "@p", provider), "@", gateways)
}

// Variables are the dashboard's variables and the queries for their values, in order.
func Variables() [][2]string {
	return [][2]string{
		{"job", `label_values(voicegw_build_info, job)`},
		{"instance", `label_values(voicegw_build_info{job=~"$job"}, instance)`},
		{"provider", `label_values(voicegw_sessions_active{job=~"$job",instance=~"$instance"}, provider)`},
	}
}

type object = map[string]any

// source is what each panel reads from.
var source = object{"type": "prometheus", "uid": "${datasource}"}

// Grafana renders the dashboard in the form that Grafana 10 and later import (schemaVersion 39, read
// 2026-11-25 from github.com/grafana/grafana/kinds/dashboard).
func Grafana() ([]byte, error) {
	var panels []object
	id, y := 0, 0
	next := func() int { id++; return id }
	for _, row := range rows {
		panels = append(panels, object{"id": next(), "type": "row", "title": row.Title, "collapsed": false, "panels": []object{}, "gridPos": grid(0, y, 24, 1)})
		y++
		width, height := 8, 8
		if row.Panels[0].Number {
			width, height = 24/len(row.Panels), 5
		}
		x := 0
		for _, p := range row.Panels {
			if x+width > 24 {
				x, y = 0, y+height
			}
			panels = append(panels, p.render(next(), grid(x, y, width, height)))
			x += width
		}
		y += height
	}
	variables := []object{{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0}}
	for _, v := range Variables() {
		variables = append(variables, object{
			"name": v[0], "type": "query", "datasource": source, "query": object{"query": v[1], "refId": v[0]}, "definition": v[1],
			"refresh": 2, "includeAll": true, "multi": true, "allValue": ".*", "current": object{"text": "All", "value": "$__all"}, "sort": 1, "hide": 0,
		})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(object{
		"uid": UID, "title": "voicegw", "tags": []string{"voicegw"}, "schemaVersion": 39, "version": 1, "editable": true, "graphTooltip": 1,
		"refresh": "30s", "time": object{"from": "now-6h", "to": "now"}, "timezone": "browser", "annotations": object{"list": []object{}}, "links": []object{},
		"templating": object{"list": variables}, "panels": panels,
	}); err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}
	return b.Bytes(), nil
}

func grid(x, y, w, h int) object { return object{"x": x, "y": y, "w": w, "h": h} }

// render makes one panel.
func (p Panel) render(id int, at object) object {
	var targets []object
	for i, q := range p.Queries {
		targets = append(targets, object{"refId": string(rune('A' + i)), "expr": Resolve(q.Expr), "legendFormat": q.Legend, "datasource": source, "editorMode": "code", "range": !p.Number, "instant": p.Number})
	}
	out := object{
		"id": id, "title": p.Title, "description": p.Help, "datasource": source, "gridPos": at, "targets": targets,
		"type": "timeseries", "options": object{"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": true}, "tooltip": object{"mode": "multi", "sort": "desc"}},
	}
	defaults := object{"unit": p.Unit, "min": 0, "custom": object{"fillOpacity": 10, "showPoints": "never"}}
	if p.Number {
		delete(defaults, "custom")
		out["type"] = "stat"
		out["options"] = object{"colorMode": "none", "graphMode": "none", "textMode": "value_and_name", "reduceOptions": object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false}}
	}
	out["fieldConfig"] = object{"defaults": defaults, "overrides": []object{}}
	return out
}
