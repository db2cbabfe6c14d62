//! The nodes' switch, for programs that know the lab only as a platform: a script, as `virsh` would be one, and who answers it.
//!
//! Owns both ends of it. What happens to a node is the machine's.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use engine::Engine as _;
use fabric::{Block, Rule, RuleGuard};

use super::trial_lab::TrialLab;

/// How often is looked for orders.
const GLANCE: Duration = Duration::from_millis(20);
/// The script. An order is a file in its folder, the answer is another: empty where it was carried out.
const SCRIPT: &str = r#"#!/bin/sh
# off, on: the power of a node. cut, join: its network. look: whether its kubelet accepts a connection.
case $2 in
NODES*)
    echo "no node $2" >&2
    exit 2
    ;;
esac
if [ "$1" = look ]; then
    timeout 1 bash -c "exec 3<>/dev/tcp/$address/10250" 2>/dev/null || exit 1
    exit 0
fi
order=FOLDER/$$
echo "$1 $2" >"$order.new" && mv "$order.new" "$order.order" || exit 2
until [ -e "$order.answer" ]; do sleep 0.05; done
said=$(cat "$order.answer")
rm -f "$order.answer"
[ -z "$said" ] || { echo "$said" >&2; exit 1; }
"#;

/// The switch. It answers for as long as [`Switch::answer`] runs.
pub(super) struct Switch {
    folder: PathBuf,
}

impl Switch {
    /// Makes the script for these nodes.
    pub(super) fn make(trial_lab: &TrialLab) -> anyhow::Result<Switch> {
        let folder = trial_lab.run_directory.join("switch");
        fs::create_dir(&folder).with_context(|| format!("make {}", folder.display()))?;
        let node = |node: &dyn engine::Node| format!("{}) address={} ;;\n", node.name(), node.address());
        let nodes: String = trial_lab.workers.iter().map(|worker| node(worker.as_ref())).collect();
        let text = SCRIPT.replace("NODES", &nodes).replace("FOLDER", &folder.display().to_string());
        let switch = Switch { folder };
        fs::write(switch.program(), text).context("write the switch")?;
        fs::set_permissions(switch.program(), Permissions::from_mode(0o700))?;
        Ok(switch)
    }

    /// The script.
    pub(super) fn program(&self) -> PathBuf {
        self.folder.join("switch")
    }

    /// Carries out orders until `has_ended` is set.
    pub(super) fn answer(&self, trial_lab: &TrialLab, has_ended: &AtomicBool) -> anyhow::Result<()> {
        let mut cut = BTreeMap::new();
        while !has_ended.load(Ordering::Relaxed) {
            for entry in fs::read_dir(&self.folder).context("the folder of the switch")? {
                let order = entry?.path();
                if order.extension().is_some_and(|extension| extension == "order") {
                    let text = fs::read_to_string(&order)?;
                    fs::remove_file(&order)?;
                    let said = match carry_out(trial_lab, text.trim(), &mut cut) {
                        Ok(()) => String::new(),
                        Err(error) => format!("{error:#}"),
                    };
                    answer(&order, &said)?;
                }
            }
            thread::sleep(GLANCE);
        }
        Ok(())
    }
}

/// In one step: the script reads it as soon as it is there.
fn answer(order: &Path, said: &str) -> anyhow::Result<()> {
    let new = order.with_extension("said");
    fs::write(&new, said)?;
    Ok(fs::rename(new, order.with_extension("answer"))?)
}

fn carry_out(trial_lab: &TrialLab, order: &str, cut: &mut BTreeMap<String, RuleGuard>) -> anyhow::Result<()> {
    let Some((order, name)) = order.split_once(' ') else { bail!("no order: {order}") };
    let machine = trial_lab.worker(name)?;
    match order {
        "off" => {
            if let Some(lost) = machine.power_off()? {
                let (blocks, files) = (lost.blocks_restored, lost.files);
                println!(
                    "          {name} lost its power, and {blocks} blocks of {files} files that were not synced"
                );
            }
        }
        "on" if !machine.has_power() => {
            machine.power_on()?;
            trial_lab.cluster.start(machine)?;
        }
        "on" => {}
        "cut" => {
            let node = || vec![name.to_owned()];
            let block = |from, to| Rule { from, to, block: Some(Block::BlackHole), ..Rule::default() };
            let rules = vec![block(node(), Vec::new()), block(Vec::new(), node())];
            cut.insert(name.to_owned(), trial_lab.fabric.impose_all(rules)?);
        }
        "join" => drop(cut.remove(name)),
        other => bail!("no order `{other}`"),
    }
    Ok(())
}
