//! Describes the panels of a dashboard.

/// A dashboard.
pub(super) struct Dashboard {
    /// Its file in `packaging/grafana`, without the extension; also its id in Grafana.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    /// The variable that selects series, and the metric that has all its values.
    pub(super) variable: (&'static str, &'static str),
    pub(super) rows: &'static [Row],
}

/// A row with a heading.
pub(super) struct Row {
    pub(super) title: &'static str,
    pub(super) panels: &'static [Panel],
}

/// A graph.
pub(super) struct Panel {
    pub(super) title: &'static str,
    pub(super) about: &'static str,
    /// The unit, as Grafana names it.
    pub(super) unit: &'static str,
    pub(super) queries: &'static [Query],
}

/// A query in PromQL with the name of its series. `SELECTED` stands for the variables of the dashboard.
pub(super) struct Query {
    pub(super) expression: &'static str,
    pub(super) legend: &'static str,
}

pub(super) const fn query(expression: &'static str, legend: &'static str) -> Query {
    Query { expression, legend }
}

pub(super) const fn panel(
    (title, unit): (&'static str, &'static str),
    about: &'static str,
    queries: &'static [Query],
) -> Panel {
    Panel { title, about, unit, queries }
}

impl Dashboard {
    pub(super) fn panels(&self) -> impl Iterator<Item = &Panel> {
        self.rows.iter().flat_map(|row| row.panels)
    }

    /// Returns the query with the variables of Grafana.
    pub(super) fn expression(&self, query: &Query) -> String {
        let name = self.variable.0;
        // A metric without the label has no value for it, which `.*` matches.
        query
            .expression
            .replace("SELECTED", &format!("job=~\"$job\",{name}=~\"$NAME\""))
            .replace("$NAME", &format!("${name}"))
    }

    /// Returns every query, as Prometheus runs it if all values of the variables are selected.
    pub(super) fn queries(&self, window: &str) -> Vec<String> {
        let name = format!("${}", self.variable.0);
        let queries = self.panels().flat_map(|panel| panel.queries);
        queries
            .map(|query| {
                let expression = self.expression(query).replace("$__rate_interval", window);
                expression.replace("$job", ".*").replace(&name, ".*")
            })
            .collect()
    }
}
