//! What programs may rely on, each point seen on a plain folder first and then on a volume.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::Path;

use libtest_mimic::Failed;

use crate::test_mount::{self, Mounted};

/// A check by its name.
pub type Check = (&'static str, fn(&Path));

pub const CHECKS: &[Check] = &[
    ("creation_is_exclusive_when_asked", creation_is_exclusive_when_asked),
    ("directories_must_be_empty_to_go", directories_must_be_empty_to_go),
    ("a_file_without_a_name_lives_while_it_is_open", a_file_without_a_name_lives_while_it_is_open),
    ("links_share_content_and_are_counted", links_share_content_and_are_counted),
    ("renames_replace_what_they_may", renames_replace_what_they_may),
    ("sizes_are_cut_and_stretched_with_zeros", sizes_are_cut_and_stretched_with_zeros),
    ("symbolic_links_lead_on", symbolic_links_lead_on),
];

pub fn on_folder(name: &str) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    test_mount::run(name, folder.path()).map(drop).map_err(Failed::from)
}

pub fn on_volume(name: &str) -> Result<(), Failed> {
    let mounted = Mounted::new();
    test_mount::run(name, &mounted.place).map(drop).map_err(Failed::from)
}

/// The number with which something was refused.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(result: std::io::Result<T>, number: i32) {
    let error = result.expect_err("refused");
    assert_eq!(error.raw_os_error(), Some(number), "{error}");
}

fn creation_is_exclusive_when_asked(folder: &Path) {
    let path = folder.join("f");
    refused(File::open(&path), libc::ENOENT);
    File::create_new(&path).expect("made");
    refused(File::create_new(&path), libc::EEXIST);
    refused(fs::create_dir(&path), libc::EEXIST);
    refused(File::open(path.join("g")), libc::ENOTDIR);
    File::create(folder.join("n".repeat(255))).expect("255 bytes are a name");
    refused(File::create(folder.join("n".repeat(256))), libc::ENAMETOOLONG);
}

fn directories_must_be_empty_to_go(folder: &Path) {
    let (outer, inner) = (folder.join("outer"), folder.join("outer/inner"));
    fs::create_dir(&outer).expect("made");
    let links = |path: &Path| fs::metadata(path).expect("there").nlink();
    fs::create_dir(&inner).expect("made");
    refused(fs::remove_dir(&outer), libc::ENOTEMPTY);
    refused(fs::remove_file(&inner), libc::EISDIR);
    fs::write(outer.join("file"), "x").expect("written");
    refused(fs::remove_dir(outer.join("file")), libc::ENOTDIR);
    assert!(links(&outer) == 3 || links(&outer) == 1, "{}", links(&outer));
    fs::remove_dir(&inner).expect("removed");
    fs::remove_file(outer.join("file")).expect("removed");
    fs::remove_dir(&outer).expect("removed");
    refused(fs::read_dir(&outer), libc::ENOENT);
}

fn a_file_without_a_name_lives_while_it_is_open(folder: &Path) {
    let path = folder.join("f");
    let mut file = File::options().read(true).write(true).create_new(true).open(&path).expect("made");
    file.write_all(b"before").expect("written");
    fs::remove_file(&path).expect("removed");
    refused(File::open(&path), libc::ENOENT);
    file.write_all(b" after").expect("written");
    file.seek(SeekFrom::Start(0)).expect("found");
    let mut text = String::new();
    file.read_to_string(&mut text).expect("read");
    assert_eq!((text.as_str(), file.metadata().expect("there").nlink()), ("before after", 0));
    File::create_new(&path).expect("the name is free");
}

fn links_share_content_and_are_counted(folder: &Path) {
    let (one, two) = (folder.join("one"), folder.join("two"));
    fs::write(&one, "a").expect("written");
    fs::hard_link(&one, &two).expect("linked");
    refused(fs::hard_link(&one, &two), libc::EEXIST);
    fs::write(&two, "b").expect("written");
    assert_eq!(fs::read(&one).expect("read"), b"b");
    let (first, second) = (fs::metadata(&one).expect("there"), fs::metadata(&two).expect("there"));
    assert_eq!((first.nlink(), first.ino()), (2, second.ino()));
    fs::remove_file(&one).expect("removed");
    assert_eq!(fs::metadata(&two).expect("there").nlink(), 1);
    fs::create_dir(folder.join("d")).expect("made");
    refused(fs::hard_link(folder.join("d"), folder.join("e")), libc::EPERM);
}

fn renames_replace_what_they_may(folder: &Path) {
    let at = |name: &str| folder.join(name);
    fs::write(at("a"), "a").expect("written");
    fs::write(at("b"), "b").expect("written");
    fs::rename(at("a"), at("b")).expect("renamed");
    assert_eq!(fs::read(at("b")).expect("read"), b"a");
    refused(File::open(at("a")), libc::ENOENT);
    fs::create_dir_all(at("d/full")).expect("made");
    fs::create_dir(at("e")).expect("made");
    refused(fs::rename(at("b"), at("d")), libc::EISDIR);
    refused(fs::rename(at("d"), at("b")), libc::ENOTDIR);
    refused(fs::rename(at("e"), at("d")), libc::ENOTEMPTY);
    refused(fs::rename(at("d"), at("d/full/below")), libc::EINVAL);
    fs::rename(at("d"), at("e")).expect("an empty directory is replaced");
    assert!(at("e/full").is_dir());
    fs::rename(at("b"), at("e/full/b")).expect("moved");
    assert_eq!(fs::read(at("e/full/b")).expect("read"), b"a");
    fs::hard_link(at("e/full/b"), at("same")).expect("linked");
    fs::rename(at("same"), at("e/full/b")).expect("of one file to itself nothing happens");
    assert!(at("same").exists());
}

fn sizes_are_cut_and_stretched_with_zeros(folder: &Path) {
    let path = folder.join("f");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).expect("made");
    file.write_all_at(&[7; 10_000], 0).expect("written");
    file.set_len(3).expect("cut");
    file.set_len(6_000).expect("stretched");
    file.write_all_at(b"x", 9_000).expect("written");
    let mut expected = vec![0; 9_001];
    expected[..3].fill(7);
    expected[9_000] = b'x';
    assert_eq!(fs::read(&path).expect("read"), expected);
    let truncated = OpenOptions::new().write(true).truncate(true).mode(0o600).open(&path).expect("open");
    assert_eq!(truncated.metadata().expect("there").len(), 0);
    assert_eq!(fs::read(&path).expect("read"), b"");
}

fn symbolic_links_lead_on(folder: &Path) {
    fs::write(folder.join("f"), "x").expect("written");
    symlink("f", folder.join("l")).expect("linked");
    assert_eq!(fs::read(folder.join("l")).expect("read"), b"x");
    assert_eq!(fs::read_link(folder.join("l")).expect("read"), Path::new("f"));
    assert_eq!(fs::symlink_metadata(folder.join("l")).expect("there").len(), 1);
    symlink("circle", folder.join("circle")).expect("linked");
    refused(File::open(folder.join("circle")), libc::ELOOP);
    fs::set_permissions(folder.join("l"), fs::Permissions::from_mode(0o600)).expect("changed");
    assert_eq!(fs::metadata(folder.join("f")).expect("there").mode() & 0o777, 0o600);
}
