//! What the cluster's files on a node's volume are called.
//!
//! Owns the names. What is in the files, `files` says.

/// On the node of the control plane.
pub mod on_control {
    /// The certificate of the cluster's authority.
    pub const AUTHORITY: &str = "authority.crt";
    /// What the API shows.
    pub const API_CERTIFICATE: &str = "api.crt";
    /// Its key.
    pub const API_KEY: &str = "api.key";
    /// What the API shows to nodes.
    pub const TO_NODES_CERTIFICATE: &str = "to-nodes.crt";
    /// Its key.
    pub const TO_NODES_KEY: &str = "to-nodes.key";
    /// What signs the tokens of pods.
    pub const TOKENS_PRIVATE: &str = "tokens.key";
    /// What they are known by.
    pub const TOKENS_PUBLIC: &str = "tokens.pub";
    /// The login of whoever may do everything.
    pub const ADMINISTRATOR_LOGIN: &str = "administrator.kubeconfig";
    /// The login of the controllers.
    pub const CONTROLLERS_LOGIN: &str = "controllers.kubeconfig";
    /// The login of the scheduler.
    pub const SCHEDULER_LOGIN: &str = "scheduler.kubeconfig";
    /// A folder that the controllers look for plugins in; there are none.
    pub const VOLUME_PLUGINS: &str = "volume-plugins";
    /// Rights that a new cluster does not have by itself.
    pub const RIGHTS: &str = "rights.json";
}

/// On a node that runs pods.
pub mod on_worker {
    /// The certificate of the cluster's authority.
    pub const AUTHORITY: &str = "authority.crt";
    /// The settings of what runs pods.
    pub const AGENT_SETTINGS: &str = "agent.json";
    /// Its login.
    pub const AGENT_LOGIN: &str = "agent.kubeconfig";
    /// The settings of what leads to services.
    pub const PROXY_SETTINGS: &str = "proxy.json";
    /// Its login.
    pub const PROXY_LOGIN: &str = "proxy.kubeconfig";
    /// The settings of what runs containers.
    pub const RUNTIME_SETTINGS: &str = "runtime.toml";
    /// Who is asked for addresses by name: nobody.
    pub const NAME_SERVERS: &str = "resolv.conf";
    /// The folder in which what runs containers looks for a network, and that has nothing else in it.
    pub const NETWORK: &str = "network";
    /// The network, in that folder.
    pub const NETWORK_SETTINGS: &str = "network/10-lab.conflist";
}
