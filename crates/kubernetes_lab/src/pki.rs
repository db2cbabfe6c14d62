//! Certificates and keys of a cluster: an authority made for it, and what that signs for its parts.
//!
//! Owns who everybody is to the API: users and groups of Kubernetes stand in certificates. They outlive any lab, and nobody outside
//! of it knows their authority.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

use crate::plan::{Member, SERVICES};

/// The name of the service that leads to the API, in each form in which a pod may write it.
const API_NAMES: &[&str] = &[
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];
/// The last year in which a certificate is one.
const LAST_YEAR: i32 = 2100;

/// A certificate with its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, in PEM.
    pub certificate: String,
    /// The key, in PEM.
    pub key: String,
}

/// A part of the cluster, as the API knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who<'a> {
    /// May do everything.
    Administrator,
    /// The API server, to the nodes.
    ApiServer,
    Controllers,
    Scheduler,
    /// What leads to services, on any node.
    NodeProxy,
    /// A node, which may change itself and what runs on it.
    Node(&'a str),
}

impl Who<'_> {
    /// Its user, and the groups that this user is in.
    #[must_use]
    pub fn names(&self) -> (String, Vec<&'static str>) {
        match self {
            Who::Administrator => ("holdfast".to_owned(), vec!["system:masters"]),
            Who::ApiServer => ("kube-apiserver".to_owned(), vec!["system:masters"]),
            Who::Controllers => ("system:kube-controller-manager".to_owned(), Vec::new()),
            Who::Scheduler => ("system:kube-scheduler".to_owned(), Vec::new()),
            Who::NodeProxy => ("system:kube-proxy".to_owned(), Vec::new()),
            Who::Node(name) => (format!("system:node:{name}"), vec!["system:nodes"]),
        }
    }
}

/// What signs for one cluster.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// A new one.
    ///
    /// # Errors
    /// When no key can be made.
    pub fn make() -> Result<Authority, rcgen::Error> {
        let mut parameters = CertificateParams::new(Vec::new())?;
        parameters.distinguished_name.push(DnType::CommonName, "holdfast lab");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        parameters.not_after = date_time_ymd(LAST_YEAR, 1, 1);
        Ok(Authority { issuer: CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)? })
    }

    /// Its certificate, by which everybody knows the others.
    #[must_use]
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// What the API shows to whoever connects to it, at the addresses of its node, of its service and of the loopback.
    ///
    /// # Errors
    /// When no key can be made.
    pub fn for_api(&self, control: &Member) -> Result<Identity, rcgen::Error> {
        let mut names: Vec<String> = API_NAMES.iter().map(|name| (*name).to_owned()).collect();
        names.push(control.name.clone());
        names.extend(
            [control.address, SERVICES.address(1), std::net::Ipv4Addr::LOCALHOST].map(|at| at.to_string()),
        );
        let parameters = CertificateParams::new(names)?;
        self.sign(parameters, ("kube-apiserver", &[]), ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// What one part shows to another.
    ///
    /// # Errors
    /// When no key can be made.
    pub fn for_client(&self, who: &Who<'_>) -> Result<Identity, rcgen::Error> {
        let (user, groups) = who.names();
        let parameters = CertificateParams::new(Vec::new())?;
        self.sign(parameters, (&user, &groups), ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(
        &self,
        mut parameters: CertificateParams,
        (user, groups): (&str, &[&str]),
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<Identity, rcgen::Error> {
        let name = &mut parameters.distinguished_name;
        name.push(DnType::CommonName, user);
        for group in groups {
            name.push(DnType::OrganizationName, *group);
        }
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        parameters.extended_key_usages = vec![usage];
        parameters.not_after = date_time_ymd(LAST_YEAR, 1, 1);
        let key = KeyPair::generate()?;
        let certificate = parameters.signed_by(&key, &self.issuer)?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// The key that the API signs the tokens of pods with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenKey {
    /// What signs, in PEM.
    pub private: String,
    /// What a signature is known by, in PEM.
    pub public: String,
}

impl TokenKey {
    /// A new one.
    ///
    /// # Errors
    /// When no key can be made.
    pub fn make() -> Result<TokenKey, rcgen::Error> {
        let key = KeyPair::generate()?;
        Ok(TokenKey { private: key.serialize_pem(), public: key.public_key_pem() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::member;

    #[test]
    fn everybody_is_the_user_that_kubernetes_gives_its_rights_to() {
        assert_eq!(Who::Node("n1").names(), ("system:node:n1".to_owned(), vec!["system:nodes"]));
        assert_eq!(Who::NodeProxy.names(), ("system:kube-proxy".to_owned(), Vec::new()));
        assert_eq!(Who::Administrator.names().1, ["system:masters"]);
    }

    #[test]
    fn certificates_and_keys_are_in_the_form_that_is_read() {
        let authority = Authority::make().expect("an authority");
        let api = authority.for_api(&member("control", 9)).expect("an identity");
        let node = authority.for_client(&Who::Node("n1")).expect("an identity");
        for certificate in [authority.certificate(), api.certificate, node.certificate] {
            assert!(certificate.starts_with("-----BEGIN CERTIFICATE-----"), "{certificate}");
        }
        let tokens = TokenKey::make().expect("a key");
        for key in [&api.key, &node.key, &tokens.private] {
            assert!(key.starts_with("-----BEGIN PRIVATE KEY-----"));
        }
        assert!(tokens.public.starts_with("-----BEGIN PUBLIC KEY-----"));
        assert_ne!(api.key, node.key);
    }
}
