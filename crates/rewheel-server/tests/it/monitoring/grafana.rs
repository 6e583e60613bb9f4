//! Writes the dashboards of Grafana, and checks what they show.

use super::engine::ENGINE;
use super::library::LIBRARY;
use super::panel::{Dashboard, Panel};
use super::series::{self, Known};
use super::{in_repository, read};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Panels in one row of the grid, which has 24 columns.
const PANELS_WIDE: usize = 3;
const HEIGHT: usize = 8;

/// `packaging/grafana` must match the panels. `REWHEEL_WRITE=1` writes it.
#[test]
fn the_dashboards_are_what_the_panels_say() {
    for dashboard in [ENGINE, LIBRARY] {
        let path = format!("packaging/grafana/{}.json", dashboard.name);
        let expected = format!("{:#}\n", document(&dashboard));
        if std::env::var_os("REWHEEL_WRITE").is_some() {
            std::fs::write(in_repository(&path), &expected).unwrap();
        }
        assert!(read(&path) == expected, "{path} is old: run this test with REWHEEL_WRITE=1");
    }
}

#[test]
fn every_panel_names_metrics_and_labels_that_exist() {
    for (dashboard, known) in [(ENGINE, series::of_engine()), (LIBRARY, series::of_library())] {
        let mut seen = BTreeSet::new();
        for panel in dashboard.panels() {
            assert!(seen.insert(panel.title), "two panels are named {}", panel.title);
            for query in panel.queries {
                let found = series::faults(&dashboard.expression(query), &known);
                assert_eq!(found, [""; 0], "panel {}", panel.title);
            }
        }
        let (variable, metric) = dashboard.variable;
        assert!(known[metric].contains(variable), "{metric} has no label {variable}");
    }
}

#[test]
fn every_metric_is_on_a_dashboard() {
    let names = |known: &Known| -> BTreeSet<String> {
        let whole = |name: &String| {
            let ends = ["_bucket", "_sum", "_count"];
            ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).to_owned()
        };
        known.keys().map(whole).collect()
    };
    for (dashboard, known) in [(ENGINE, series::of_engine()), (LIBRARY, series::of_library())] {
        let all = dashboard.queries("5m").join("\n");
        let missing: Vec<_> =
            names(&known).into_iter().filter(|name| !all.contains(name)).collect();
        assert_eq!(missing, [""; 0], "the dashboard {} does not show these", dashboard.name);
    }
}

#[test]
fn a_panel_names_only_runbooks_that_exist() {
    for panel in ENGINE.panels() {
        let named = panel.about.split_once("Runbook").map(|(_, pages)| pages);
        let pages = named
            .into_iter()
            .flat_map(|pages| pages.trim_start_matches("s: ").trim_start_matches(": ").split(", "));
        for page in pages {
            let page = format!("docs/guide/runbooks/{}.md", page.trim_end_matches('.'));
            assert!(in_repository(&page).is_file(), "panel {}: {page} is missing", panel.title);
        }
    }
}

fn document(dashboard: &Dashboard) -> Value {
    let mut panels = Vec::new();
    let (mut top, mut id) = (0, 0);
    let mut next_id = || {
        id += 1;
        id
    };
    for row in dashboard.rows {
        panels.push(json!({
            "id": next_id(), "type": "row", "title": row.title, "collapsed": false, "panels": [],
            "gridPos": {"x": 0, "y": top, "w": 24, "h": 1},
        }));
        top += 1;
        for line in row.panels.chunks(PANELS_WIDE) {
            let width = 24 / line.len();
            for (place, panel) in line.iter().enumerate() {
                let grid = json!({"x": place * width, "y": top, "w": width, "h": HEIGHT});
                panels.push(graph(dashboard, panel, next_id(), &grid));
            }
            top += HEIGHT;
        }
    }
    json!({
        "uid": dashboard.name,
        "title": dashboard.title,
        "description": dashboard.about,
        "tags": ["rewheel"],
        "schemaVersion": 39,
        "version": 1,
        "editable": true,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": variables(dashboard)},
        "panels": panels,
    })
}

fn variables(dashboard: &Dashboard) -> Value {
    let (name, metric) = dashboard.variable;
    let source = json!({"type": "prometheus", "uid": "${datasource}"});
    let values_of = |name: &str, query: String| {
        json!({
            "name": name, "type": "query", "label": name, "datasource": source,
            "definition": query, "query": {"query": query, "refId": name}, "refresh": 2, "sort": 1,
            "includeAll": true, "allValue": ".*", "multi": true, "options": [], "hide": 0,
            "current": {"text": ["All"], "value": ["$__all"]},
        })
    };
    json!([
        {"name": "datasource", "type": "datasource", "label": "Data source", "query": "prometheus",
         "refresh": 1, "includeAll": false, "multi": false, "options": [], "hide": 0, "current": {}},
        values_of("job", format!("label_values({metric}, job)")),
        values_of(name, format!("label_values({metric}{{job=~\"$job\"}}, {name})")),
    ])
}

fn graph(dashboard: &Dashboard, panel: &Panel, id: usize, grid: &Value) -> Value {
    let source = json!({"type": "prometheus", "uid": "${datasource}"});
    let targets: Vec<Value> = panel
        .queries
        .iter()
        .zip('A'..)
        .map(|(query, name)| {
            json!({
                "refId": name.to_string(), "datasource": source, "editorMode": "code", "range": true,
                "expr": dashboard.expression(query), "legendFormat": query.legend,
            })
        })
        .collect();
    json!({
        "id": id, "type": "timeseries", "title": panel.title, "description": panel.about,
        "gridPos": grid, "datasource": source, "targets": targets,
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0,
                "custom": {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never"},
            },
            "overrides": [],
        },
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    })
}
