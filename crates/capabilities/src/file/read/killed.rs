//! Lines of a log that tell of killed processes, as a file has them.
//!
//! Owns reading this part of the file.

use super::super::killed::KilledLines;
use super::super::language::{KILLED, MOST_SIGNALS};
use super::*;

impl Reader<'_> {
    pub(super) fn killed(&mut self, node: &Node) -> Option<Vec<KilledLines>> {
        let items = self.decoder.list(node, "`killed`", 1)?;
        let read: Vec<Option<KilledLines>> = items.iter().map(|item| self.killed_lines(item)).collect();
        read.into_iter().collect()
    }

    fn killed_lines(&mut self, node: &Node) -> Option<KilledLines> {
        let record = self.decoder.record(node, &KILLED)?;
        let of = record.get("of").and_then(|node| self.decoder.text(node, "whose process it is"));
        let line = record.get("line").and_then(|node| self.decoder.text(node, "the line"));
        let own_signals = record.get("own-signals").map_or(Some(Vec::new()), |node| self.signals(node));
        let line = line?;
        let names = names::of_a_killed_process();
        let template = Template::decode(&mut self.decoder, self.text, &line, &names, false)?;
        match KilledLines::new(of?.value, template, own_signals?) {
            Ok(lines) => Some(lines),
            Err(message) => {
                let help = "write it as in `LOG: {process} (PID {number}) was terminated by signal {signal}`";
                self.decoder.findings.add("killed-line", line.at, message, "not such a line", help);
                None
            }
        }
    }

    fn signals(&mut self, node: &Node) -> Option<Vec<i32>> {
        let items = self.decoder.list(node, "`own-signals`", 1)?;
        let read: Vec<Option<i32>> = items
            .iter()
            .map(|item| {
                let signal = self.decoder.count(item, "a signal's number", 1, MOST_SIGNALS)?;
                i32::try_from(signal.value).ok()
            })
            .collect();
        read.into_iter().collect()
    }
}
