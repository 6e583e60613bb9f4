//! Draws the screen of `rewheel top`.

use super::look::{Watched, ago, now};
use crate::kinds::doing;
use crate::screen::text;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Gauge, Row, Sparkline, Table};
use rewheel_core::is_unprintable;
use serde_json::Value;

const QUIET: Style = Style::new().fg(Color::DarkGray);
const GOOD: Style = Style::new().fg(Color::Green);
const CARE: Style = Style::new().fg(Color::Yellow);
const BAD: Style = Style::new().fg(Color::Red);

pub(super) fn draw(frame: &mut Frame<'_>, watched: &Watched) {
    let holders = watched.last.holders.len().min(6) as u16 + 2;
    let incidents = watched.last.incidents.len().clamp(1, 6) as u16 + 2;
    let parts = [
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(5),
        Constraint::Min(4),
        Constraint::Length(incidents),
        Constraint::Length(holders),
    ];
    let [title, jobs, load, kinds, failing, fleet] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(headline(watched), title);
    frame.render_widget(states(&watched.last.stats), jobs);
    draw_load(frame, load, watched);
    draw_kinds(frame, kinds, &watched.last.kinds);
    draw_incidents(frame, failing, &watched.last.incidents);
    draw_holders(frame, fleet, &watched.last.holders);
    // Replace every character that could control the terminal.
    for cell in &mut frame.buffer_mut().content {
        if cell.symbol().contains(is_unprintable) {
            cell.set_symbol("?");
        }
    }
}

fn headline(watched: &Watched) -> Line<'static> {
    let name = Span::styled("rewheel top ", Style::new().add_modifier(Modifier::BOLD));
    let server = Span::raw(watched.server.clone());
    let rest = match &watched.trouble {
        None => Span::styled("  press q to quit", QUIET),
        Some(why) => {
            let old = now().duration_since(watched.last.at).as_secs();
            Span::styled(format!("  {old}s old: {why}"), BAD)
        }
    };
    Line::from(vec![name, server, rest])
}

fn states(stats: &Value) -> Line<'static> {
    let mut parts = Vec::new();
    for (state, style) in
        [("scheduled", Style::new()), ("leased", GOOD), ("paused", CARE), ("dead", BAD)]
    {
        let count = stats["jobs"][state].as_u64().unwrap_or_default();
        let style = if count == 0 { QUIET } else { style };
        parts.push(Span::styled(format!("{count} {state}   "), style));
    }
    if let Some(late) = ago(&stats["oldest_due"]) {
        parts.push(Span::styled(format!("the oldest due job is {late} late"), CARE));
    }
    Line::from(parts)
}

fn draw_load(frame: &mut Frame<'_>, area: Rect, watched: &Watched) {
    let [slots, curve] =
        Layout::horizontal([Constraint::Length(30), Constraint::Min(20)]).areas(area);
    let here = &watched.last.stats["here"];
    let number = |name: &str| here[name].as_u64().unwrap_or_default();
    let all = number("concurrency").max(1);
    let used = all.saturating_sub(number("concurrency_free"));
    let gauge = Gauge::default()
        .block(titled("slots on this node"))
        .gauge_style(if used == all { CARE } else { GOOD })
        .label(format!("{used} of {all}"))
        .ratio((used as f64 / all as f64).clamp(0.0, 1.0));
    frame.render_widget(gauge, slots);
    let rate = watched.curve.back().copied().unwrap_or_default();
    let shown: Vec<u64> = {
        let width = usize::from(curve.width.saturating_sub(2));
        let skipped = watched.curve.len().saturating_sub(width);
        watched.curve.iter().skip(skipped).copied().collect()
    };
    let title = format!("attempts finished on this node: {rate}/s");
    let line = Sparkline::default().block(titled(&title)).style(GOOD).data(shown);
    frame.render_widget(line, curve);
}

fn draw_kinds(frame: &mut Frame<'_>, area: Rect, kinds: &[Value]) {
    let mut kinds: Vec<&Value> = kinds.iter().collect();
    let count = |kind: &Value, state: &str| kind["jobs"][state].as_u64().unwrap_or_default();
    // Kinds that need attention come first.
    kinds.sort_by_key(|kind| {
        let is_well = doing(kind) == "runnable";
        let busy = count(kind, "leased") + count(kind, "scheduled");
        (is_well, std::cmp::Reverse(count(kind, "dead")), std::cmp::Reverse(busy))
    });
    let rows = kinds.iter().map(|kind| {
        let state = doing(kind);
        let style = match state {
            "runnable" => Style::new(),
            "paused" => CARE,
            _ => BAD,
        };
        let mut cells = vec![
            Cell::from(text(kind, "kind")),
            Cell::from(text(kind, "runner")).style(QUIET),
            Cell::from(state).style(style),
        ];
        for (state, style) in
            [("scheduled", Style::new()), ("leased", GOOD), ("paused", CARE), ("dead", BAD)]
        {
            let count = count(kind, state);
            let style = if count == 0 { QUIET } else { style };
            cells.push(Cell::from(Line::from(count.to_string()).right_aligned()).style(style));
        }
        let late = ago(&kind["oldest_due"]).unwrap_or_default();
        cells.push(Cell::from(Line::from(late).right_aligned()).style(CARE));
        Row::new(cells)
    });
    let widths = [
        Constraint::Min(16),
        Constraint::Length(9),
        Constraint::Length(13),
        Constraint::Length(10),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(9),
    ];
    let names = ["KIND", "RUNNER", "STATUS", "SCHEDULED", "LEASED", "PAUSED", "DEAD", "LATE"];
    let header = names.iter().enumerate().map(|(at, name)| {
        let line = Line::from(*name);
        Cell::from(if at < 3 { line } else { line.right_aligned() })
    });
    let table = Table::new(rows, widths).header(Row::new(header).style(QUIET));
    frame.render_widget(table.block(titled("kinds")), area);
}

fn draw_incidents(frame: &mut Frame<'_>, area: Rect, incidents: &[Value]) {
    if incidents.is_empty() {
        let line = Line::from("no failures").style(GOOD);
        let block = titled("failures by cause");
        let inner = block.inner(area);
        frame.render_widget(block, area);
        frame.render_widget(line, inner);
        return;
    }
    let rows = incidents.iter().map(|incident| {
        let code = text(incident, "code");
        let category = text(incident, "category");
        Row::new([
            Cell::from(Line::from(text(incident, "count")).right_aligned()).style(BAD),
            Cell::from(text(incident, "kind")),
            Cell::from(format!("{category} {code}").trim().to_owned()).style(CARE),
            Cell::from(
                ago(&incident["last_seen"]).map(|ago| format!("{ago} ago")).unwrap_or_default(),
            ),
            Cell::from(text(incident, "message")),
        ])
    });
    let widths = [
        Constraint::Length(7),
        Constraint::Length(20),
        Constraint::Length(18),
        Constraint::Length(12),
        Constraint::Min(20),
    ];
    frame.render_widget(Table::new(rows, widths).block(titled("failures by cause")), area);
}

fn draw_holders(frame: &mut Frame<'_>, area: Rect, holders: &[Value]) {
    let rows = holders.iter().map(|holder| {
        let state = text(holder, "state");
        let style = match state.as_str() {
            "alive" => GOOD,
            "silent" => CARE,
            _ => QUIET,
        };
        let here = if holder["here"] == true { "this node" } else { "" };
        let id = text(holder, "id");
        Row::new([
            Cell::from(state).style(style),
            Cell::from(text(holder, "role")).style(QUIET),
            Cell::from(text(holder, "name")),
            Cell::from(here),
            Cell::from(id).style(QUIET),
        ])
    });
    let widths = [
        Constraint::Length(7),
        Constraint::Length(7),
        Constraint::Length(24),
        Constraint::Length(9),
        Constraint::Min(36),
    ];
    frame.render_widget(Table::new(rows, widths).block(titled("holders")), area);
}

fn titled(title: &str) -> Block<'_> {
    Block::new().borders(Borders::TOP).border_style(QUIET).title(title.bold())
}

#[cfg(test)]
mod tests {
    use super::super::look::{Look, Watched, now};
    use super::{draw, is_unprintable};
    use crate::cli_error::{CliError, exit};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use rewheel_core::SecretUrl;
    use serde_json::{Value, json};
    use std::time::Duration;

    fn look(decided: u64) -> Look {
        let kind = |name: &str, parked: bool, dead: u64| {
            json!({
                "kind": name, "runner": "callback", "runnable": true, "paused": false, "parked": parked,
                "jobs": {"scheduled": 7, "leased": 1, "paused": 0, "dead": dead}, "oldest_due": "2020-01-01T00:00:00.000Z",
            })
        };
        let list = |value: Value| value.as_array().unwrap().clone();
        Look {
            at: now(),
            grouped: now(),
            stats: json!({
                "jobs": {"scheduled": 14, "leased": 2, "paused": 0, "dead": 3}, "oldest_due": null,
                "here": {"concurrency": 8, "concurrency_free": 6, "decisions": [{"decision": "done", "count": decided}]},
            }),
            kinds: vec![kind("mail", false, 0), kind("charge-card", true, 3)],
            holders: list(
                json!([{"state": "alive", "role": "engine", "name": "north", "here": true, "id": "0193"}]),
            ),
            incidents: list(
                json!([{"count": 3, "kind": "charge-card", "category": "timeout", "code": "504", "message": "too slow"}]),
            ),
        }
    }

    fn drawn(watched: &Watched) -> String {
        let mut terminal = Terminal::new(TestBackend::new(110, 30)).unwrap();
        terminal.draw(|frame| draw(frame, watched)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn what_needs_an_operator_comes_first() {
        let mut watched = Watched::new(&SecretUrl::new("http://a:pw@b.example"), look(0));
        let mut next = look(500);
        next.at = watched.last.at + Duration::from_secs(5);
        watched.note(Ok(next));
        let text = drawn(&watched);
        for words in
            ["2 of 8", "100/s", "14 scheduled", "3 dead", "timeout 504", "too slow", "this node"]
        {
            assert!(text.contains(words), "{words} is not in\n{text}");
        }
        let (parked, well) = (text.find("parked").unwrap(), text.find("runnable").unwrap());
        assert!(parked < well, "{text}");
    }

    #[test]
    fn what_is_old_says_so() {
        let mut watched = Watched::new(&SecretUrl::new("http://a:pw@b.example"), look(0));
        let gone = anyhow::anyhow!("the server cannot be reached");
        watched.note(Err(CliError::new(exit::UNAVAILABLE, gone)));
        let text = drawn(&watched);
        assert!(text.contains("s old: the server cannot be reached"), "{text}");
        assert!(text.contains("charge-card"), "what was seen is still there\n{text}");
        watched.note(Ok(look(1)));
        assert!(!drawn(&watched).contains("cannot be reached"));
    }

    #[test]
    fn nothing_that_others_wrote_controls_the_terminal() {
        let mut seen = look(0);
        seen.kinds[0]["kind"] = json!("a\x1b[2J\u{9b}b");
        seen.incidents[0]["message"] = json!("\u{202e}slow\r\ntoo");
        seen.holders[0]["name"] = json!("\u{2066}n\x07");
        let mut watched = Watched::new(&SecretUrl::new("http://a:pw@b.example/\x1b[1m"), seen);
        let gone = anyhow::anyhow!("http://a:pw@b.example\u{85}is gone");
        watched.note(Err(CliError::new(exit::UNAVAILABLE, gone)));
        let text = drawn(&watched);
        let left: Vec<char> = text.chars().filter(|c| *c != '\n' && is_unprintable(*c)).collect();
        assert!(left.is_empty() && !text.contains("pw"), "{left:?}\n{text}");
        assert!(text.contains("a\\u001b[2J\\u009bb") && text.contains("\\u202eslow"), "{text}");
    }

    #[test]
    fn a_small_terminal_is_no_reason_to_die() {
        let watched = Watched::new(&SecretUrl::new("http://a:pw@b.example"), look(0));
        for (width, height) in [(1, 1), (20, 5), (300, 80)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, &watched)).unwrap();
        }
    }
}
