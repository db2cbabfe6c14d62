//! Components that a power-off left in doubt: what they should have lost could not be taken back.
//!
//! Owns who is in doubt, and until when. What a power-off takes back is for `component`, who serves for `opening`.

use std::io;

use disk::mirror::Standing;

use super::opening::{OpenError, ServingMirror};
use super::{MirroredDisk, Serving, State};

impl State {
    /// What a power-off should have taken from a component is in part still there. Nothing starts from it, not even by force, before
    /// it has caught up with another: all of it counts as different until then.
    pub(super) fn doubt(&mut self, number: usize, why: &io::Error) {
        let place = self.components[number].place.name.clone();
        self.news.push(format!(
            "the component on {place} could not be brought back to what was durable at a power-off, so nothing \
             starts from it before it has caught up with another: {why}"
        ));
        self.current.remove(&number);
        self.in_doubt.insert(number, why.to_string());
        self.failed_rollbacks.push(((number, place), why.to_string()));
    }

    /// Why none of its components can serve.
    pub(super) fn why_none_serves(&self) -> OpenError {
        let has_power = |number: usize| !self.retired.contains(&number) && self.components[number].is_on();
        match self.in_doubt.iter().find(|(number, _)| has_power(**number)) {
            Some((number, why)) => {
                let place = &self.components[*number].place.name;
                OpenError::InDoubt { why: format!("the component on {place}: {why}") }
            }
            None => OpenError::NoComponent,
        }
    }
}

impl MirroredDisk {
    /// Components in doubt that have caught up with the one that serves are as good as any.
    pub(super) fn clear_doubts(&self) {
        let mut state = self.state();
        let Some(serving) = &state.serving else { return };
        for number in self.caught_up(&state, serving) {
            state.in_doubt.remove(&number);
        }
    }

    /// Those in doubt that have caught up with the one that serves since they were.
    pub(super) fn caught_up(&self, state: &State, serving: &Serving) -> Vec<usize> {
        let peers = serving.peers.iter().copied().enumerate();
        let in_doubt = peers.filter(|(_, number)| state.in_doubt.contains_key(number));
        in_doubt.filter(|of| self.is_live(&serving.mirror, *of)).map(|(_, number)| number).collect()
    }

    /// Whether a component, by its number among the peers and by its own, is live. As long as the one that serves has not been
    /// told of a power-off, it may still take a broken connection for a sound one.
    pub(super) fn is_live(&self, mirror: &ServingMirror, (peer, number): (usize, usize)) -> bool {
        !self.differences().is_untold(number) && mirror.state(peer).standing == Standing::Live
    }

    /// Each time a component, by number with its host, could not be brought back since this was last asked, and why.
    pub(crate) fn take_failed_rollbacks(&self) -> Vec<((usize, String), String)> {
        std::mem::take(&mut self.state().failed_rollbacks)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::{Duration, UNIX_EPOCH};

    use disk::{Attributes, Files, Mount, NewInode, ROOT, Scope, ask};
    use scenario::Promotion;

    use super::*;
    use crate::mirrored::test_mirror::{A, B, test_mirror, that_acknowledges};

    const PATIENCE: Duration = Duration::from_secs(30);
    const NOT_BROUGHT_BACK: &str = "the component on b could not be brought back";

    fn close(disk: &MirroredDisk, mount: &Mount) {
        mount.power_off();
        disk.lose(mount).expect("closed");
    }

    /// The volume is open on the first host, and has content that is not synced. The power of the second's component is cut, and
    /// its content cannot be brought back.
    fn fail_to_bring_back_the_second(disk: &MirroredDisk, folder: &Path) {
        let serves: Arc<dyn Files> = disk.state().serving.as_ref().expect("open").mirror.clone();
        let attributes = Attributes::new(0o644, 0, 0, UNIX_EPOCH);
        let made = ask(serves.as_ref(), |files| files.make(ROOT, "f".as_ref(), &NewInode::File, attributes));
        let file = made.expect("made").inode;
        let write = |content: &[u8]| {
            let written =
                ask(serves.as_ref(), |files| files.write(file, 0, content, None, false, UNIX_EPOCH));
            written.expect("written");
        };
        write(b"old");
        ask(serves.as_ref(), |files| files.sync(file, Scope::All)).expect("synced");
        write(b"new");
        assert!(disk.settle(PATIENCE), "all of it is there");
        let content = folder.join("1").join("content").join(file.to_string());
        let aside = folder.join("aside");
        std::fs::rename(&content, &aside).expect("the content is moved away");
        assert!(disk.host_is_off(B).is_err());
        std::fs::rename(&aside, &content).expect("it is again");
    }

    #[test]
    fn a_component_that_could_not_be_brought_back_is_not_even_promoted_by_force_before_it_has_caught_up() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let Some(disk) = test_mirror(folder.path(), 8, Promotion::Forced) else {
            return eprintln!(
                "skipped: a_component_that_could_not_be_brought_back: no network namespace may be entered"
            );
        };
        let (_point, mount) = disk.prepare(A, false).expect("opened");
        assert!(disk.settle(PATIENCE), "the other component is up to date");
        fail_to_bring_back_the_second(&disk, folder.path());
        let told = disk.look_after(&|_| true);
        assert!(told.iter().any(|what| what.starts_with(NOT_BROUGHT_BACK)), "{told:?}");
        let failed = disk.take_failed_rollbacks();
        assert_eq!(failed.iter().map(|(of, _)| of.clone()).collect::<Vec<_>>(), [(1, "b".to_owned())]);
        assert!(disk.take_failed_rollbacks().is_empty(), "told once");
        close(&disk, &mount);

        disk.host_is_off(A).expect("off");
        disk.host_is_on(B).expect("on");
        assert!(disk.hosts_to_start().is_empty());
        let refused = disk.prepare(B, true).err().map(|error| error.to_string()).expect("refused");
        assert!(refused.contains("so nothing starts from it: the component on b: "), "{refused}");

        disk.host_is_on(A).expect("on");
        let (_point, mount) = disk.prepare(A, false).expect("opened");
        assert!(disk.settle(PATIENCE), "it catches up");
        close(&disk, &mount);
        disk.host_is_off(A).expect("off");
        let (_point, mount) = disk.prepare(B, false).expect("opened from what has caught up");
        close(&disk, &mount);
    }

    #[test]
    fn a_copy_that_lost_its_power_unnoticed_is_not_up_to_date_where_it_need_only_have_received() {
        let [semi, sync] = [scenario::Acknowledge::Semi, scenario::Acknowledge::Sync];
        for (first, acknowledge, is_current) in [(72, semi, false), (73, sync, true)] {
            let folder = tempfile::tempdir().expect("a folder");
            let Some(disk) = that_acknowledges(folder.path(), first, Promotion::UpToDate, acknowledge) else {
                return eprintln!("skipped: a_copy_that_lost_its_power: no network namespace may be entered");
            };
            let (_point, mount) = disk.prepare(A, false).expect("opened");
            assert!(disk.settle(PATIENCE), "the other component is up to date");
            // As its host's power-off says it, before the connection is found broken.
            disk.differences().lost(1, &disk::mirror::Dirt::new());
            let other = disk.state().components[1].clone();
            let mirror = disk.state().serving.as_ref().expect("open").mirror.clone();
            assert!(!disk.is_live(&mirror, (0, 1)) && other.is_on());
            mount.power_off();
            disk.lose(&mount).expect("closed");
            assert_eq!(disk.state().current.contains(&1), is_current, "{acknowledge:?}");
        }
    }
}
