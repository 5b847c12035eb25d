import java.io.FileInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * An HTTP/2 client on Java's HttpClient: java Client.java NAME AUTHORITY.crt STEP...
 *
 * The steps are explained in __init__.py. Java writes no secrets: take the server's.
 */
class Client {
    private static String name;
    private static HttpClient client;

    public static void main(String[] words) throws Exception {
        name = words[0];
        var context = trust(words[1]);
        client = connect(context);
        for (var step : Arrays.copyOfRange(words, 2, words.length)) {
            if (step.startsWith("pause-")) {
                Thread.sleep(Long.parseLong(step.substring("pause-".length())));
            } else if (step.equals("again")) {
                client = connect(context);
            } else {
                var sent = Arrays.stream(step.split("\\+")).map(line -> ask(line.split(":")));
                CompletableFuture.allOf(sent.toArray(CompletableFuture[]::new)).join();
            }
        }
    }

    private static SSLContext trust(String authority) throws Exception {
        var keys = KeyStore.getInstance(KeyStore.getDefaultType());
        keys.load(null);
        try (var file = new FileInputStream(authority)) {
            keys.setCertificateEntry("authority", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(keys);
        var context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    private static HttpClient connect(SSLContext context) {
        return HttpClient.newBuilder().version(HttpClient.Version.HTTP_2).sslContext(context).build();
    }

    private static CompletableFuture<?> ask(String[] words) {
        var size = Integer.parseInt(words[2]);
        var body = size > 0 ? BodyPublishers.ofString("x".repeat(size)) : BodyPublishers.noBody();
        var request = HttpRequest.newBuilder(URI.create("https://" + name + words[1])).method(words[0], body).build();
        return client.sendAsync(request, BodyHandlers.ofByteArray());
    }
}
