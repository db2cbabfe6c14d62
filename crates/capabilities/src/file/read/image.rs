//! The image that an engine's programs come from.
//!
//! Owns where its mistakes are told. The form of names is `image`'s.

use super::super::image::{ImageName, ImageSource, is_path};
use super::*;

impl Reader<'_> {
    pub(super) fn image(&mut self, node: &Node) -> Option<ImageSource> {
        let written = self.decoder.text(node, "the image")?;
        if is_path(&written.value) {
            return Some(ImageSource::File(self.decoder.file(node, "the image")?.value));
        }
        match ImageName::parse(&written.value) {
            Ok(name) => Some(ImageSource::Registry(name)),
            Err(mistake) => {
                let message = format!("`{}` names no image", yaml::wording::shortened(&written.value));
                self.decoder.findings.add("bad-image", written.at, message, mistake.label(), mistake.help());
                None
            }
        }
    }
}
