//! A volume as a pod claims it, with what its storage class says of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fields::{Fields, ObjectError};

/// Parameters of a storage class whose names have one of these are left out: some drivers take passwords there.
const SECRET: &[&str] = &["key", "password", "secret", "token"];

/// What is known of a volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// The claim's name.
    pub claim: String,
    /// The volume that is bound to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<String>,
    /// Its size, as the API writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<String>,
    /// How it may be mounted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access_modes: Vec<String>,
    /// What becomes of it without its claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim: Option<String>,
    /// The driver that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioner: Option<String>,
    /// What the storage class says to the driver, but for secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}

impl Volume {
    /// Reads what a claim says.
    ///
    /// # Errors
    /// When a field is missing that every claim has.
    pub fn read(claim: &Value) -> Result<Volume, ObjectError> {
        let fields = Fields::of("PersistentVolumeClaim", claim)?;
        Ok(Volume {
            claim: fields.needed("/metadata/name")?,
            volume: fields.owned("/spec/volumeName"),
            storage_class: fields.owned("/spec/storageClassName"),
            capacity: fields.owned("/status/capacity/storage"),
            access_modes: fields.texts("/spec/accessModes"),
            reclaim: None,
            provisioner: None,
            parameters: BTreeMap::new(),
        })
    }

    /// Adds what the volume itself says.
    ///
    /// # Errors
    /// When it is none.
    pub fn with_volume(self, volume: &Value) -> Result<Volume, ObjectError> {
        let fields = Fields::of("PersistentVolume", volume)?;
        Ok(Volume {
            reclaim: fields.owned("/spec/persistentVolumeReclaimPolicy"),
            provisioner: self.provisioner.or_else(|| fields.owned("/spec/csi/driver")),
            ..self
        })
    }

    /// Adds what its storage class says.
    ///
    /// # Errors
    /// When it is none.
    pub fn with_class(self, class: &Value) -> Result<Volume, ObjectError> {
        let fields = Fields::of("StorageClass", class)?;
        let mut parameters = fields.named_texts("/parameters");
        parameters.retain(|name, _| {
            let name = name.to_lowercase();
            !SECRET.iter().any(|secret| name.contains(secret))
        });
        Ok(Volume { provisioner: fields.owned("/provisioner").or(self.provisioner), parameters, ..self })
    }
}
