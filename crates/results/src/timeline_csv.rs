//! Reads `timeline.csv`: a row a second for each operation. Owns the columns' meaning, not what is made of them.

use measure::TimelineRow;
use measure::csv::HEADING;

/// A second later than this is a damaged row, not a run: 31 days.
pub const LATEST_SECOND: u64 = 31 * 24 * 3600;

/// Rows that could be read, and what to tell the reader about the rest.
pub(crate) struct Timeline {
    pub(crate) rows: Vec<TimelineRow>,
    /// Whether a line amid the others could not be read.
    pub(crate) is_damaged: bool,
    pub(crate) notes: Vec<String>,
}

/// Reads a timeline. A last line without its line end was cut off while it was written: it is left out and mentioned.
pub(crate) fn parse(text: &str) -> Timeline {
    let mut timeline = Timeline { rows: Vec::new(), is_damaged: false, notes: Vec::new() };
    let mut unreadable_lines = Vec::new();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let number = index + 1;
        let Some(line) = line.strip_suffix('\n') else {
            timeline
                .notes
                .push(format!("timeline.csv: line {number}, the last, is cut off and was left out"));
            break;
        };
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.is_empty() || (index == 0 && line.trim_start_matches('\u{feff}') == HEADING) {
            continue;
        }
        match row(line) {
            Some(row) => timeline.rows.push(row),
            None => unreadable_lines.push(number),
        }
    }
    if let Some(first) = unreadable_lines.first() {
        timeline.is_damaged = true;
        let lines = unreadable_lines.len();
        timeline.notes.push(format!(
            "timeline.csv: {lines} unreadable line(s), the first at line {first}, were left out"
        ));
    }
    timeline
}

fn row(line: &str) -> Option<TimelineRow> {
    let fields = fields(line)?;
    let [t_s, load, operation, count, errors, p50, p95, p99, max] = <[String; 9]>::try_from(fields).ok()?;
    let t_s: f64 = t_s.trim().parse().ok()?;
    if !(0.0..=LATEST_SECOND as f64).contains(&t_s) {
        return None;
    }
    Some(TimelineRow {
        second: t_s as u64,
        load,
        operation,
        count: count.trim().parse().ok()?,
        errors: errors.trim().parse().ok()?,
        p50_us: latency(&p50)?,
        p95_us: latency(&p95)?,
        p99_us: latency(&p99)?,
        max_us: latency(&max)?,
    })
}

/// A latency; empty where nothing succeeded.
fn latency(field: &str) -> Option<u64> {
    let field = field.trim();
    if field.is_empty() { Some(0) } else { field.parse().ok() }
}

/// The rows of a file with this name and header that can be read; a damaged or unfinished line is left out and mentioned.
pub(crate) fn rows<R>(
    text: &str,
    (file, header): (&str, &str),
    row: impl Fn(&str) -> Option<R>,
    notes: &mut Vec<String>,
) -> Vec<R> {
    let mut rows = Vec::new();
    let mut left_out = 0u64;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let whole = line.strip_suffix('\n');
        if index == 0 && whole == Some(header) {
            continue;
        }
        match whole.and_then(&row) {
            Some(row) => rows.push(row),
            None => left_out += 1,
        }
    }
    if left_out > 0 {
        notes.push(format!("{file}: {left_out} unreadable line(s) were left out"));
    }
    rows
}

/// The fields of one line, quoted ones included (`""` stands for a quote); none when a quote is never closed.
pub(crate) fn fields(line: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars().peekable();
    let mut quoted = false;
    while let Some(character) = characters.next() {
        let field = fields.last_mut()?;
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if field.is_empty() => quoted = true,
            ',' if !quoted => fields.push(String::new()),
            other => field.push(other),
        }
    }
    (!quoted).then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Rows as `second load operation count errors p99`, then the notes.
    #[track_caller]
    fn check(text: &str, expected_rows: &[&str], expected_notes: &[&str]) {
        let timeline = parse(text);
        let rows: Vec<String> = timeline
            .rows
            .iter()
            .map(|row| {
                format!(
                    "{} {} {} {} {} {}",
                    row.second, row.load, row.operation, row.count, row.errors, row.p99_us
                )
            })
            .collect();
        assert_eq!(rows, expected_rows);
        assert_eq!(timeline.notes, expected_notes);
        assert_eq!(timeline.is_damaged, expected_notes.iter().any(|note| note.contains("unreadable")));
    }

    #[test]
    fn whole_lines_are_read() {
        check(
            &format!(
                "{HEADING}\n0,bank,transaction,410,0,900,1200,1900,2500\n1,bank,\"a \"\"b\"\", c\",0,3,,,,\r\n"
            ),
            &["0 bank transaction 410 0 1900", "1 bank a \"b\", c 0 3 0"],
            &[],
        );
    }

    #[test]
    fn a_last_line_that_was_cut_off_is_left_out_and_mentioned() {
        check(
            &format!("{HEADING}\n0,bank,transaction,410,0,900,1200,1900,2500\n1,bank,transaction,4"),
            &["0 bank transaction 410 0 1900"],
            &["timeline.csv: line 3, the last, is cut off and was left out"],
        );
    }

    #[test]
    fn a_cut_number_is_not_taken_for_a_smaller_one() {
        check(
            &format!("{HEADING}\n0,bank,transaction,410,0,900,1200,1900,25"),
            &[],
            &["timeline.csv: line 2, the last, is cut off and was left out"],
        );
    }

    #[test]
    fn damaged_lines_are_counted_not_guessed() {
        let note = "timeline.csv: 4 unreadable line(s), the first at line 2, were left out";
        let damaged = "x,a,b,1,0,1,1,1,1\n1e300,a,b,1,0,1,1,1,1\nNaN,a,b,1,0,1,1,1,1\n3,a,b,-1,0,1,1,1,1\n";
        check(&format!("{HEADING}\n{damaged}4,a,b,1,0,1,1,1,1\n"), &["4 a b 1 0 1"], &[note]);
    }

    #[test]
    fn an_empty_file_has_no_rows() {
        check("", &[], &[]);
    }

    proptest! {
        #[test]
        fn any_rows_come_back_as_they_were_written(
            names in prop::collection::vec(("[^\r\n]*", "[a\", ]{0,6}"), 0..8),
            figure in any::<u64>(),
        ) {
            let row = |(load, operation)| TimelineRow { second: 17, load, operation, count: figure, max_us: 3, ..TimelineRow::default() };
            let rows: Vec<TimelineRow> = names.into_iter().map(row).collect();
            let mut writer = measure::CsvWriter::new(Vec::new()).expect("a writer");
            rows.iter().for_each(|row| writer.write_row(row).expect("written"));
            let read = parse(&String::from_utf8(writer.into_inner()).expect("text"));
            prop_assert_eq!((read.rows, read.notes), (rows, Vec::new()));
        }

        #[test]
        fn any_text_is_read_without_panic(text in any::<String>()) {
            parse(&text);
        }
    }
}
