//! iot's time series on databases of keys and values.
//!
//! Owns the keys, `iot/MACHINE:SENSOR:TIME`, in which the time is written as what is left of all times: the newest value of a series
//! comes first, as in NoSQLBench's table. A read is the range of its series, from where that begins.

use client::SessionError;
use client::key_value::{KeyValueSession, Operation, Value};

use super::Drawn;
use crate::cells::numbered;
use crate::key_value::entries;
use crate::keyed_cells::is_cell;

/// What all keys begin with.
pub(super) const FOLDER: &str = "iot/";

/// Characters of a text beside its data: the number of the write, the station, the value and what stands between them.
pub(super) const BESIDE_DATA: usize = 80;

/// What the keys of a series begin with.
fn of_series(drawn: &Drawn) -> String {
    format!("{FOLDER}{}:{}:", drawn.machine, drawn.sensor)
}

/// The write of a value.
pub(super) fn write_of(drawn: &Drawn) -> Operation {
    let key = format!("{}{:020}", of_series(drawn), u64::MAX - drawn.time_ms);
    let text = format!("{} {} {} {}", numbered(drawn.write), drawn.station, drawn.value, drawn.data);
    Operation::Write { key, value: Value::Text(text) }
}

/// The newest values of a series and of no other, at most so many.
fn newest_of(drawn: &Drawn, limit: u32) -> Operation {
    Operation::Scan { prefix: of_series(drawn), after: None, limit }
}

/// Reads them.
pub(super) async fn read_newest(
    session: &mut dyn KeyValueSession,
    drawn: &Drawn,
    limit: u32,
) -> Result<(), SessionError> {
    let found = session.transact(vec![newest_of(drawn, limit)]).await?;
    entries(found.first())?.iter().try_for_each(|(key, value)| is_cell(value, key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::number_of;

    fn drawn(sensor: u64, time_ms: u64) -> Drawn {
        Drawn {
            machine: "m".to_owned(),
            sensor: format!("sensor-{sensor}"),
            time_ms,
            value: 100.0,
            station: "s".to_owned(),
            data: "data".to_owned(),
            write: 7,
        }
    }

    fn key(sensor: u64, time_ms: u64) -> String {
        match write_of(&drawn(sensor, time_ms)) {
            Operation::Write { key, value: Value::Text(text) } => {
                assert_eq!(number_of(&text), Some(7));
                key
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_read_has_the_values_of_its_own_series_with_the_newest_first() {
        let mut keys = [key(1, 900), key(10, 1_000), key(1, 1_000), key(2, 950), key(1, 1_100), key(10, 900)];
        keys.sort_unstable();
        let Operation::Scan { prefix, after: None, limit: 2 } = newest_of(&drawn(1, 1_000), 2) else {
            panic!("another read");
        };
        let own: Vec<&String> = keys.iter().filter(|key| key.starts_with(&prefix)).collect();
        assert_eq!(own, [&key(1, 1_100), &key(1, 1_000), &key(1, 900)]);
    }
}
