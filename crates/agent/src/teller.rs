//! Sends lines of JSON over one direction of a connection, for several threads.
//!
//! Lines of two threads do not mix, and no sender waits for the receiver: while a connection is cut, either end still has to notice
//! that the other is silent. Lines that are not written yet wait in memory.

use std::io::{self, Write};
use std::sync::mpsc::{Sender, channel};

use serde::Serialize;

/// Where lines are sent. The connection is closed once its last sender is dropped and all lines are written.
#[derive(Clone)]
pub(crate) struct Teller(Sender<Vec<u8>>);

impl Teller {
    /// Writes lines to `output`, on a thread of its own that ends with the last sender or when a write fails.
    pub(crate) fn to(mut output: impl Write + Send + 'static) -> io::Result<Teller> {
        let (say, lines) = channel::<Vec<u8>>();
        let write = move || {
            while let Ok(line) = lines.recv() {
                if output.write_all(&line).and_then(|()| output.flush()).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("teller".to_owned()).spawn(write)?;
        Ok(Teller(say))
    }

    /// Sends a line; false when it is known that no more lines are written.
    pub(crate) fn tell(&self, words: &impl Serialize) -> bool {
        let Ok(mut line) = serde_json::to_vec(words) else { return false };
        line.push(b'\n');
        self.0.send(line).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::Receiver;

    use crate::words::News;

    /// A way that takes nothing until it is opened.
    struct Cut {
        opened: Receiver<()>,
        arrived: Sender<Vec<u8>>,
    }

    impl Write for Cut {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.opened.recv();
            let _ = self.arrived.send(bytes.to_vec());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn who_tells_something_does_not_wait_for_a_way_that_is_cut() {
        let ((open, opened), (arrived, lines)) = (channel(), channel());
        let teller = Teller::to(Cut { opened, arrived }).expect("a thread");
        for number in 0..3 {
            assert!(teller.tell(&News::Pong { number, at_ns: 1 }));
        }
        drop((open, teller));
        let whole = lines.iter().collect::<Vec<_>>().concat();
        assert_eq!(whole.iter().filter(|byte| **byte == b'\n').count(), 3);
    }
}
