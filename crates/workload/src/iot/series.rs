//! iot's time series on databases of keys and values.
//!
//! Owns the keys, `iot/MACHINE:SENSOR:TIME`, in which the time is written as what is left of all times: the newest value of a series
//! comes first, as in NoSQLBench's table. A read is a range from where a series begins.

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

/// Reads the newest values of a series, at most so many.
pub(super) async fn read_newest(
    session: &mut dyn KeyValueSession,
    drawn: &Drawn,
    limit: u32,
) -> Result<(), SessionError> {
    let series = of_series(drawn);
    let scan = Operation::Scan { prefix: FOLDER.to_owned(), after: Some(series.clone()), limit };
    let found = session.transact(vec![scan]).await?;
    // Behind the last value of a series stand those of another.
    let mut own = entries(found.first())?.iter().take_while(|(key, _)| key.starts_with(&series));
    own.try_for_each(|(key, value)| is_cell(value, key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::number_of;

    fn key(sensor: u64, time_ms: u64) -> String {
        let drawn = Drawn {
            machine: "m".to_owned(),
            sensor: format!("sensor-{sensor}"),
            time_ms,
            value: 100.0,
            station: "s".to_owned(),
            data: "data".to_owned(),
            write: 7,
        };
        match write_of(&drawn) {
            Operation::Write { key, value: Value::Text(text) } => {
                assert_eq!(number_of(&text), Some(7));
                key
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_values_of_a_series_lie_together_with_the_newest_first() {
        let mut keys =
            vec![key(1, 900), key(10, 1_000), key(1, 1_000), key(2, 950), key(1, 1_100), key(10, 900)];
        keys.sort_unstable();
        let own: Vec<&String> = keys.iter().filter(|key| key.starts_with("iot/m:sensor-1:")).collect();
        assert_eq!(own, [&key(1, 1_100), &key(1, 1_000), &key(1, 900)]);
        let first = keys.iter().position(|one| *one == key(1, 1_100)).expect("a key");
        assert!(keys[first..].iter().take(3).all(|key| key.starts_with("iot/m:sensor-1:")), "{keys:?}");
        assert!(keys[..first].iter().all(|key| key.as_str() < "iot/m:sensor-1:"));
    }
}
