//! Our choice of keys beside that of go-ycsb: both draw, and a two-sample chi-square test says whether it is one
//! distribution. Of workload C it is the requests themselves: go-ycsb's own workload runs, and what it reads is written
//! down.
//!
//! Needs Go and its module proxy; without them the test says so and is skipped. go-ycsb hashes the octets of a number in
//! the other order than YCSB does, so that other keys are the popular ones; for the comparison ours are hashed in that
//! order too, and their own order is tested against the names of YCSB's own keys.

use std::path::PathBuf;
use std::process::Command;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use workload::distribution::hash::fnv64;
use workload::distribution::{Hotspot, ScrambledZipfian, Zipfian};

const ITEMS: usize = 200;
const DRAWS: usize = 100_000;

const PROGRAM: &str = r#"package main

import (
	"context"
	"fmt"
	"math/rand"
	"strconv"

	"github.com/magiconair/properties"
	"github.com/pingcap/go-ycsb/pkg/generator"
	_ "github.com/pingcap/go-ycsb/pkg/workload"
	"github.com/pingcap/go-ycsb/pkg/ycsb"
)

// Takes down which key is read, and is asked for nothing else.
type recorder struct {
	ycsb.DB
	counts []int
}

func (r recorder) Read(_ context.Context, _ string, key string, _ []string) (map[string][]byte, error) {
	number, err := strconv.Atoi(key[len("user"):])
	if err != nil {
		panic(err)
	}
	r.counts[number]++
	return nil, nil
}

func requests() {
	given := properties.NewProperties()
	for name, value := range map[string]string{
		"recordcount": "200", "insertorder": "ordered", "requestdistribution": "zipfian",
		"readproportion": "1", "updateproportion": "0", "silence": "true",
	} {
		given.Set(name, value)
	}
	workload, err := ycsb.GetWorkloadCreator("core").Create(given)
	if err != nil {
		panic(err)
	}
	// A key beyond the last one is asked for as well.
	r := recorder{counts: make([]int, 201)}
	ctx := workload.InitThread(context.Background(), 0, 1)
	for i := 0; i < 100000; i++ {
		if err := workload.DoTransaction(ctx, r); err != nil {
			panic(err)
		}
	}
	fmt.Println()
	for _, c := range r.counts {
		fmt.Print(c, " ")
	}
	fmt.Println()
}

func main() {
	r := rand.New(rand.NewSource(20261122))
	for _, g := range []ycsb.Generator{
		generator.NewZipfianWithItems(200, 0.99),
		generator.NewHotspot(0, 199, 0.2, 0.8),
	} {
		counts := make([]int, 200)
		for i := 0; i < 100000; i++ {
			counts[g.Next(r)]++
		}
		for _, c := range counts {
			fmt.Print(c, " ")
		}
		fmt.Println()
	}
	requests()
}
"#;

/// What go-ycsb draws, a line of counts for each generator; or why it cannot be had.
fn theirs() -> Result<Vec<Vec<u64>>, String> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("go-ycsb");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let write =
        |name: &str, text: &str| std::fs::write(folder.join(name), text).map_err(|error| error.to_string());
    write("main.go", PROGRAM)?;
    write("go.mod", "module sample\n\ngo 1.21\n\nrequire github.com/pingcap/go-ycsb v1.0.1\n")?;
    let ended = Command::new("go")
        .args(["run", "."])
        .current_dir(&folder)
        .env("GOFLAGS", "-mod=mod -modcacherw")
        .env("GOPATH", folder.join("path"))
        .env("GOCACHE", folder.join("cache"))
        .output()
        .map_err(|error| format!("go: {error}"))?;
    if !ended.status.success() {
        let told = String::from_utf8_lossy(&ended.stderr);
        return Err(format!("go: {}", told.lines().last().unwrap_or_default()));
    }
    let lines = String::from_utf8_lossy(&ended.stdout).into_owned();
    Ok(lines
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()))
        .map(|line| line.split_whitespace().filter_map(|count| count.parse().ok()).collect())
        .collect())
}

fn ours(mut draw: impl FnMut(&mut ChaCha8Rng) -> u64) -> Vec<u64> {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    // One more than there are: workload C's range ends behind the last record.
    let mut counts = vec![0; ITEMS + 1];
    (0..DRAWS).for_each(|_| counts[usize::try_from(draw(&mut rng)).expect("small")] += 1);
    counts
}

/// How many standard deviations two samples of the same size are apart, by Wilson and Hilferty's approximation.
fn apart(one: &[u64], other: &[u64]) -> f64 {
    let pairs = one.iter().zip(other).map(|(one, other)| (*one as f64, *other as f64));
    let classes: Vec<(f64, f64)> = pairs.filter(|(one, other)| one + other >= 10.0).collect();
    let statistic: f64 = classes.iter().map(|(one, other)| (one - other).powi(2) / (one + other)).sum();
    let freedom = classes.len() as f64 - 1.0;
    let spread = 2.0 / (9.0 * freedom);
    ((statistic / freedom).cbrt() - (1.0 - spread)) / spread.sqrt()
}

#[test]
#[ignore = "second tier: builds go-ycsb's workload, most of a minute"]
fn keys_come_as_often_as_in_go_ycsb() {
    let theirs = match theirs() {
        Ok(theirs) => theirs,
        Err(reason) => {
            eprintln!("skipped: keys_come_as_often_as_in_go_ycsb: {reason}");
            return;
        }
    };
    let lengths: Vec<usize> = theirs.iter().map(Vec::len).collect();
    assert_eq!(lengths, [ITEMS, ITEMS, ITEMS + 1], "{theirs:?}");
    let (zipfian, hotspot) = (Zipfian::new(ITEMS as u64, 0.99), Hotspot::new(ITEMS as u64, 0.2, 0.8));
    let (zipfian, hotspot) = (ours(|rng| zipfian.draw(rng)), ours(|rng| hotspot.draw(rng)));
    let off = [apart(&zipfian, &theirs[0]), apart(&hotspot, &theirs[1])];
    assert!(off.iter().all(|off| *off < 4.9), "{off:?} standard deviations apart");
    // What is not the same distribution is told apart.
    let other = Zipfian::new(ITEMS as u64, 0.9);
    assert!(apart(&ours(|rng| other.draw(rng)), &theirs[0]) > 4.9);
    // What workload C asks for, spread over a range that ends behind the last record; and another range is told apart.
    let requests = |items: u64| {
        let scrambled = ScrambledZipfian::new(items);
        ours(|rng| fnv64(scrambled.draw_rank(rng).swap_bytes()) % items)
    };
    let off = apart(&requests(ITEMS as u64 + 1), &theirs[2]);
    assert!(off < 4.9, "{off} standard deviations apart");
    assert!(apart(&requests(ITEMS as u64), &theirs[2]) > 4.9);
}
