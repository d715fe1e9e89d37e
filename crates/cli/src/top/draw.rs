//! Draws the screen as a frame of a terminal. It decides only where things stand and how they are marked.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::Paragraph;
use tenure_console::output::printable;
use tenure_core::count::{grouped, rough};
use unicode_width::UnicodeWidthStr;

use crate::top::asked::Content;
use crate::top::rows::{ScreenRow, Tone};
use crate::top::screen::Screen;
use crate::top::view::View;

const HELP: &str = "  j k, arrows   one row down, up           Tab     the next table
  PgDn PgUp     ten rows                   g G     the first, the last row
  Enter         open the selected row: a queue, a limit, a pool or a worker
                shows its jobs, and a job shows why it waits
  Esc, q        back; q leaves from the first screen, Ctrl-C from any
  /             only rows with a text; Enter keeps the filter, Esc drops it
  p             pause the refresh until p again
  r             refresh now

  stuck         work waits and cannot proceed until somebody acts
  look          work proceeds, but with problems

  The last line shows what to do about the selected row.";

const KEYS: &str = "Enter open  Tab next table  / filter  p pause  ? help  q quit";

/// Draws the whole screen.
pub fn draw(frame: &mut Frame<'_>, screen: &Screen, colours: bool) {
    let area = frame.area();
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mut lines = vec![first_line(screen, width, colours), second_line(screen, colours)];
    let body = height.saturating_sub(lines.len() + 1);
    let mut foot = KEYS.to_owned();
    if screen.is_help() {
        lines.extend(HELP.lines().map(|line| Line::raw(line.to_owned())).take(body));
        foot = "any key goes back".to_owned();
    } else {
        let rows = screen.rows(width);
        let selected = screen.selected(&rows);
        // The selected row is in sight, with as many rows above it as fit.
        let from = selected.map_or(0, |at| (at + 2).saturating_sub(body));
        for (at, row) in rows.iter().enumerate().skip(from).take(body) {
            lines.push(line(row, Some(at) == selected, colours));
        }
        if let Some(fix) = selected.and_then(|at| rows[at].fix.as_ref()) {
            foot = format!("-> {}", printable(fix));
        }
        if screen.is_typing() || !screen.filter().is_empty() {
            let cursor = if screen.is_typing() { "_" } else { "" };
            foot =
                format!("/{}{cursor}   Enter keeps it, Esc drops it", printable(screen.filter()));
        }
    }
    frame.render_widget(Paragraph::new(Text::from(lines)), area);
    if let Some(y) = area.height.checked_sub(1) {
        let place = Rect { y: area.y + y, height: 1, ..area };
        frame.render_widget(Paragraph::new(Line::styled(foot, tone(Tone::Dim, colours))), place);
    }
}

/// The address, the namespace, the view, and whether the content is fresh.
fn first_line(screen: &Screen, width: usize, colours: bool) -> Line<'static> {
    let (address, namespace) = screen.place();
    let title = match screen.view() {
        View::Overview => String::new(),
        view => format!("  {}", view.title()),
    };
    let left = printable(&format!("{address}  {namespace}{title}"));
    let (right, mark) = match (screen.away(), screen.is_paused(), screen.asked_at()) {
        (Some(_), ..) => ("AWAY".to_owned(), Tone::Stuck),
        (_, true, _) => ("PAUSED".to_owned(), Tone::Look),
        (.., Some(at)) => (tenure_console::output::clock::second(at), Tone::Dim),
        (.., None) => ("…".to_owned(), Tone::Dim),
    };
    let gap = width.saturating_sub(left.width() + right.width()).max(2);
    Line::from(vec![
        Span::styled(left, Style::new().add_modifier(Modifier::BOLD)),
        Span::raw(" ".repeat(gap)),
        Span::styled(right, tone(mark, colours)),
    ])
}

/// The totals, or the error if nothing was answered.
fn second_line(screen: &Screen, colours: bool) -> Line<'static> {
    if let Some(why) = screen.away() {
        return Line::styled(printable(why), tone(Tone::Stuck, colours));
    }
    let Some(Content::Overview(replies)) = screen.content() else { return Line::default() };
    let jobs = replies.stats.jobs.iter().filter(|(state, n)| **n > 0 && !state.is_finished());
    let mut parts: Vec<String> =
        jobs.map(|(state, n)| format!("{} {}", grouped(*n), state.as_str())).collect();
    if parts.is_empty() {
        parts.push("no unfinished jobs".to_owned());
    }
    let oldest = replies.stats.oldest_ready_at;
    parts.extend(oldest.map(|at| format!("oldest {}", rough(replies.now.since(at)))));
    let failed: u64 = replies.failures.items.iter().map(|group| group.count).sum();
    parts.push(format!("{} failed in 1h", grouped(failed)));
    Line::raw(parts.join(", "))
}

fn line(row: &ScreenRow, is_selected: bool, colours: bool) -> Line<'static> {
    let style = tone(row.tone, colours);
    let style = if is_selected { style.add_modifier(Modifier::REVERSED) } else { style };
    Line::styled(row.text.clone(), style)
}

/// Colours carry no meaning of their own: the words say the same.
fn tone(tone: Tone, colours: bool) -> Style {
    let style = Style::new();
    match (tone, colours) {
        (Tone::Head, _) => style.add_modifier(Modifier::BOLD),
        (Tone::Dim, true) => style.fg(Color::DarkGray),
        (Tone::Look, true) => style.fg(Color::Yellow),
        (Tone::Stuck, true) => style.fg(Color::Red),
        _ => style,
    }
}
