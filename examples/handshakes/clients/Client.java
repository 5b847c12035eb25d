import java.io.FileInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.Arrays;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManagerFactory;

/**
 * An HTTP/1.1 client on Java's HttpClient: java Client.java NAME AUTHORITY.crt VERSION HOW REQUESTS...
 *
 * VERSION is 1.2 or 1.3. HOW is `full` (one connection) or `resumed` (two, the second with a ticket). A request is
 * written METHOD:TARGET:BODY_BYTES and is sent once the response to the one before has been read. Java writes no
 * secrets: take the server's.
 */
class Client {
    public static void main(String[] words) throws Exception {
        var keys = KeyStore.getInstance(KeyStore.getDefaultType());
        keys.load(null);
        try (var file = new FileInputStream(words[1])) {
            keys.setCertificateEntry("authority", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(keys);
        var context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        var parameters = new SSLParameters();
        parameters.setProtocols(new String[] {"TLSv" + words[2]});
        for (var left = words[3].equals("resumed") ? 2 : 1; left > 0; left--) {
            var client = HttpClient.newBuilder()
                    .version(HttpClient.Version.HTTP_1_1).sslContext(context).sslParameters(parameters).build();
            for (var line : Arrays.copyOfRange(words, 4, words.length)) {
                ask(client, words[0], line.split(":"));
            }
        }
    }

    private static void ask(HttpClient client, String name, String[] parts) throws Exception {
        var size = Integer.parseInt(parts[2]);
        var body = size > 0 ? BodyPublishers.ofString("x".repeat(size)) : BodyPublishers.noBody();
        var request = HttpRequest.newBuilder(URI.create("https://" + name + parts[1])).method(parts[0], body).build();
        client.send(request, BodyHandlers.ofByteArray());
    }
}
